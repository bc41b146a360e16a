import { indexOfRow, type Group, type Run } from "../core/run.ts";
import type { Success } from "../core/successes.ts";
import { filesOf } from "../core/task-files.ts";
import type { Row } from "../core/ids.ts";
import type { Look, LookTask } from "./look-files.ts";
import { type Memory, recall, wholeBefore } from "./recall.ts";
import { type Reason, type ReasonKind, reasonText } from "./reasons.ts";

/**
 * Which tasks of a run would be skipped, were it submitted now, and why the others run. A task runs if one that it waits for does: so
 * this can be told in advance.
 */
export interface SkipPlan {
  readonly skipped: number;
  /** Why the others run, most first. */
  readonly runs: readonly SkipReason[];
}

export interface SkipReason {
  readonly kind: ReasonKind;
  readonly tasks: number;
  /** The number of the first of them, and its reason in words. */
  readonly task: number;
  readonly reason: string;
}

export interface PlanContext {
  /** What files came from, in order. */
  readonly known: (files: readonly string[]) => Promise<readonly (Success | undefined)[]>;
  readonly look: (tasks: readonly LookTask[]) => Promise<readonly Look[] | undefined>;
}

/** Tasks of larger runs are not looked at in advance. */
export const MOST_PLANNED = 100_000;

const AT_ONCE = 1000;

const UNANSWERED: Look = { reason: { kind: "unanswered" } };

/** Paths as people write them: from the run's directory. */
const shortened = ({ kind, about, than }: Reason, { spec: { cwd } }: Run): Reason => {
  const short = (text: string): string => (text.startsWith(`${cwd}/`) ? text.slice(cwd.length + 1) : text);
  return {
    kind,
    ...(about === undefined ? {} : { about: short(about) }),
    ...(than === undefined ? {} : { than: short(than) }),
  };
};

const rowsOf = ({ first, count }: Group): Row[] => Array.from({ length: count }, (_, i) => first + i);

/** What each output of a run came from. */
const recallAll = async (run: Run, known: PlanContext["known"]): Promise<Map<string, Success>> => {
  const found = new Map<string, Success>();
  for (const group of run.groups) {
    if (group.spec.outputs === undefined) continue;
    const rows = rowsOf(group);
    for (let at = 0; at < rows.length; at += AT_ONCE) {
      const files = rows.slice(at, at + AT_ONCE).flatMap((row) => filesOf(run, group, row).outputs);
      const answers = await known(files);
      for (const [i, file] of files.entries()) if (answers[i] !== undefined) found.set(file, answers[i]);
    }
  }
  return found;
};

/** The groups, each behind those that it waits for. */
function* inOrder({ groups }: Run): Generator<Group> {
  const open = new Set(groups);
  for (let progress = true; progress;) {
    progress = false;
    for (const group of open) {
      if (group.spec.after.some((each) => "group" in each && open.has(groups[each.group]!))) continue;
      open.delete(group);
      progress = true;
      yield group;
    }
  }
}

/** Of each group with outputs, by its place in the run. */
export const planSkips = async (run: Run, { known, look }: PlanContext): Promise<Map<number, SkipPlan>> => {
  const found = await recallAll(run, known);
  const skipped = new Uint8Array(run.total);
  const memory: Memory = { of: (file) => found.get(file), isSkipped: (row) => skipped[row] === 1 };
  const plans = new Map<number, SkipPlan>();

  const planGroup = async (group: Group): Promise<SkipPlan> => {
    const whole = wholeBefore(memory, run, group);
    let before = whole.next();
    while (before.done !== true) before = whole.next();
    const reasons = new Map<ReasonKind, { kind: ReasonKind; tasks: number; task: number; reason: string }>();
    let count = 0;
    const runs = (row: Row, reason: Reason): void => {
      const { kind } = reason;
      const same = reasons.get(kind);
      if (same === undefined)
        reasons.set(kind, { kind, tasks: 1, task: indexOfRow(run, row), reason: reasonText(shortened(reason, run)) });
      else same.tasks += 1;
    };
    const rows = rowsOf(group);
    for (let at = 0; at < rows.length; at += AT_ONCE) {
      const asked = rows.slice(at, at + AT_ONCE).map((row) => {
        const recalled = recall(memory, run, group, row, before.value as Exclude<typeof before.value, undefined>);
        return { row, recalled };
      });
      const tasks = asked.flatMap(({ recalled }) =>
        "reason" in recalled ? [] : [{ ...recalled.files, mode: group.spec.skip ?? "newer" }],
      );
      const looks = tasks.length === 0 ? [] : await look(tasks);
      let next = 0;
      for (const { row, recalled } of asked) {
        if ("reason" in recalled) {
          runs(row, recalled.reason);
          continue;
        }
        const seen = looks?.[next++] ?? UNANSWERED;
        const { contents } = recalled;
        const reason =
          contents?.reason ??
          seen.reason ??
          (contents === undefined || contents.match(seen.contents ?? 0) ? undefined : ({ kind: "contents" } as const));
        if (reason !== undefined) runs(row, reason);
        else {
          skipped[row] = 1;
          count += 1;
        }
      }
    }
    return { skipped: count, runs: [...reasons.values()].toSorted((a, b) => b.tasks - a.tasks) };
  };

  for (const group of inOrder(run))
    if (group.spec.outputs !== undefined) plans.set(group.index, await planGroup(group));
  return plans;
};
