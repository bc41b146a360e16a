import { type FailureGroup, type FailuresView, MOST_FAILURE_GROUPS } from "../../api/failures.ts";
import type { Service } from "../../api/service.ts";
import type { Row } from "../../core/ids.ts";
import { type Run, indexOfRow } from "../../core/run.ts";
import { Task } from "../../core/states.ts";
import { peek } from "../../core/table.ts";
import { stderrTail } from "../../logs/tails.ts";
import { signalName, taskName } from "../../views/views.ts";
import { whyFailed } from "../../views/why.ts";
import type { ServiceContext } from "./context.ts";
import { inTurns } from "./turns.ts";

/** Failed tasks, alike with alike. How they ended is known of all; what they wrote is read of some. */

/** Tasks whose output is read for one answer, and how many of those of one cause; what was read is kept for the next. */
const MOST_READ = 1000;
const MOST_OF_A_CAUSE = 200;
const MOST_KEPT = 20_000;
const AT_ONCE = 16;
const MOST_CAUSES = 1000;
const LONGEST_LINE = 300;
const NAMED = 5;

/** Tasks that ended alike, as their columns say. */
interface Cause {
  readonly exit: number;
  readonly signal: number;
  readonly reason: number;
  count: number;
  /** The first of them. */
  readonly rows: Row[];
}

interface Found extends Omit<FailureGroup, "why" | "tasks"> {
  readonly rows: Row[];
  readonly stderr: string | null;
}

const PER_TURN = 50_000;

function* causesOf(run: Run): Generator<undefined, Cause[]> {
  const causes = new Map<string, Cause>();
  const { pageRows, pages } = run.table;
  let seen = 0;
  for (const [index, page] of pages.entries()) {
    if (page === undefined) continue;
    const first = index * pageRows;
    const count = Math.min(pageRows, run.total - first);
    for (let slot = 0; slot < count; slot += 1) {
      if (page.state[slot] !== Task.FAILED) continue;
      const [exit, signal, reason] = [page.exit[slot]!, page.signal[slot]!, page.reason[slot]!];
      // what an agent says may be other for each task: the last place is for all that are left
      const key = causes.size < MOST_CAUSES ? `${exit} ${signal} ${reason}` : `${exit} ${signal}`;
      let cause = causes.get(key);
      if (cause === undefined) causes.set(key, (cause = { exit, signal, reason, count: 0, rows: [] }));
      cause.count += 1;
      if (cause.rows.length < MOST_OF_A_CAUSE) cause.rows.push(first + slot);
    }
    seen += count;
    if (seen >= PER_TURN) {
      seen = 0;
      yield;
    }
  }
  return [...causes.values()].toSorted((a, b) => b.count - a.count);
}

const lastLineOf = (stderr: string | null): string | null => {
  const line = stderr?.trimEnd().split("\n").at(-1)?.trim().slice(0, LONGEST_LINE) ?? "";
  return line === "" ? null : line;
};

/** Lines that differ in numbers alone are alike. */
const likeness = (line: string | null): string => line?.replaceAll(/0x[0-9a-f]+|\d+/gi, "#") ?? "";

const inGroups = (run: Run, cause: Cause, read: ReadonlyMap<Row, string | null>): Found[] => {
  const ended = {
    exitCode: cause.exit < 0 ? null : cause.exit,
    signal: signalName(cause.signal),
    reason: run.reasons[cause.reason] || null,
  };
  const found = new Map<string, Found>();
  let left = cause.count;
  for (const row of cause.rows) {
    const stderr = read.get(row);
    if (stderr === undefined) continue;
    left -= 1;
    const lastLine = lastLineOf(stderr);
    const key = likeness(lastLine);
    const known = found.get(key);
    if (known !== undefined) {
      known.count += 1;
      if (known.rows.length < NAMED) known.rows.push(row);
    } else found.set(key, { ...ended, lastLine, read: true, count: 1, rows: [row], stderr });
  }
  const groups = [...found.values()];
  if (left === 0) return groups;
  // all that were looked at say the same: so do the others, as far as anybody can tell
  if (groups.length === 1) return [{ ...groups[0]!, count: cause.count }];
  const rest = cause.rows.filter((row) => !read.has(row)).slice(0, NAMED);
  return [...groups, { ...ended, lastLine: null, read: false, count: left, rows: rest, stderr: null }];
};

export const createFailureService = ({
  shelf,
  logs,
}: Pick<ServiceContext, "shelf" | "logs">): Pick<Service, "failures"> => {
  const kept = new WeakMap<Run, Map<string, string | null>>();

  const readAll = async (run: Run, rows: readonly Row[]): Promise<ReadonlyMap<Row, string | null>> => {
    let known = kept.get(run);
    if (known === undefined || known.size > MOST_KEPT) kept.set(run, (known = new Map()));
    const lines = known;
    const found = new Map<Row, string | null>();
    const readOne = async (row: Row): Promise<void> => {
      const key = `${row} ${peek(run.table, row)?.attempt[row % run.table.pageRows] ?? 0}`;
      if (!lines.has(key)) lines.set(key, await stderrTail(logs, run, row));
      found.set(row, lines.get(key) ?? null);
    };
    for (let from = 0; from < rows.length; from += AT_ONCE)
      await Promise.all(rows.slice(from, from + AT_ONCE).map(readOne));
    return found;
  };

  return {
    failures: async (id): Promise<FailuresView> => {
      const run = await shelf.whole(id);
      const causes = await inTurns(causesOf(run));
      const share = Math.max(1, Math.floor(MOST_READ / Math.max(1, Math.min(causes.length, MOST_READ))));
      const chosen = causes.slice(0, MOST_READ).flatMap(({ rows }) => rows.slice(0, share));
      const read = await readAll(run, chosen);
      const all = causes
        .flatMap((cause) => inGroups(run, cause, read))
        .toSorted((a, b) => b.count - a.count || (a.rows[0] ?? 0) - (b.rows[0] ?? 0));
      const left = all.slice(MOST_FAILURE_GROUPS);
      return {
        run: run.id,
        failed: run.counts[Task.FAILED]!,
        groups: all.slice(0, MOST_FAILURE_GROUPS).map(({ rows, stderr, ...group }) => ({
          ...group,
          tasks: rows.map((row) => ({
            id: `${run.id}.${indexOfRow(run, row)}`,
            index: indexOfRow(run, row),
            name: taskName(run, row),
          })),
          why: whyFailed(run, rows[0] ?? 0, stderr),
        })),
        more: { groups: left.length, tasks: left.reduce((sum, { count }) => sum + count, 0) },
      };
    },
  };
};
