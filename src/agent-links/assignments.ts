import { oneBefore } from "../core/ahead.ts";
import type { RowRanges } from "../core/events.ts";
import { isAhead } from "../core/held.ts";
import { itemsOf, storedAt } from "../core/item-source.ts";
import { setOf, timeLimitOf } from "../core/retry-set.ts";
import { type Group, type Run, groupOf, isUniform, shapeOfRow } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { Flag, touch } from "../core/table.ts";
import type { Assign, Behind } from "../protocol/messages.ts";
import { define, defineAll, groupsIn } from "./definitions.ts";
import type { AgentLink } from "./link.ts";
import type { Row } from "../core/ids.ts";

/** What an agent learns about its tasks: their groups (definitions.ts), then rows as ranges. */

/** Rows of one group for one agent. */
interface Rows {
  readonly group: Group;
  readonly ranges: number[];
  count: number;
  /** Of the first of them; `attempts` are those of all, once one differs. */
  attempt: number;
  attempts: number[] | undefined;
  readonly alone: number[];
}

const noRows = (group: Group): Rows => ({ group, ranges: [], count: 0, attempt: 0, attempts: undefined, alone: [] });

const addAttempt = (rows: Rows, attempt: number): void => {
  if (rows.count === 0) rows.attempt = attempt;
  else if (rows.attempts === undefined && attempt !== rows.attempt)
    rows.attempts = Array.from({ length: rows.count }, () => rows.attempt);
  rows.attempts?.push(attempt);
  rows.count += 1;
};

/** Adds the rows that this agent still has (some may have been cancelled while the journal was written). */
const addRows = (rows: Rows, link: AgentLink, run: Run, from: number, end: number): void => {
  const { ranges, alone } = rows;
  const { pageRows } = run.table;
  let behind = ranges.length > 0 ? ranges.at(-2)! + ranges.at(-1)! : -1;
  for (let row = from; row < end;) {
    const page = touch(run.table, row);
    const first = row - (row % pageRows);
    for (const stop = Math.min(end, first + pageRows); row < stop; row += 1) {
      const slot = row - first;
      if (page.agent[slot] !== link.id) continue;
      if (row === behind) ranges[ranges.length - 1]! += 1;
      else ranges.push(row, 1);
      behind = row + 1;
      addAttempt(rows, page.attempt[slot]!);
      if ((page.flags[slot]! & Flag.ALONE) !== 0) alone.push(row);
    }
  }
};

/** Where `retry --set` gave some of these another limit than their group's. */
const timeLimits = (group: Group, rows: () => readonly Row[]): Pick<Assign, "timeLimits"> => {
  if (group.sets === undefined || !rows().some((row) => setOf(group, row)?.timeLimit !== undefined)) return {};
  return { timeLimits: rows().map((row) => timeLimitOf(group, row) ?? null) };
};

const assignRows = (
  link: AgentLink,
  run: Run,
  { group, ranges, count, attempt, attempts, alone }: Rows,
  more: Pick<Assign, "behind" | "followed"> = {},
): void => {
  if (count === 0) return;
  define(link, run, group);
  const rows = (): number[] => {
    const out: number[] = [];
    for (let i = 0; i < ranges.length; i += 2)
      for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) out.push(row);
    return out;
  };
  const items = itemsOf(group.spec, group.items);
  // numbers of a range are counted there
  const isSent = group.items !== undefined || group.spec.items.kind === "matrix";
  const message: Assign = {
    t: "assign",
    run: run.id,
    group: group.index,
    ranges,
    attempts: attempts ?? attempt,
    ...(isSent ? { items: rows().map((row) => storedAt(items, row - group.first)!) } : {}),
    ...(isUniform(group) ? {} : { resources: rows().map((row) => shapeOfRow(group, row).resources) }),
    ...timeLimits(group, rows),
    ...(alone.length === 0 ? {} : { alone }),
    ...more,
  };
  link.channel?.send(message);
};

/** Whether nothing has to be said of its one task but its row: see Singles. */
const isSingle = ({ count, spec, items, sets }: Group): boolean =>
  count === 1 && spec.ranks === undefined && items === undefined && spec.items.kind !== "matrix" && sets === undefined;

/** Gathers tasks that are groups of their own into one message. */
const gatherSingles = (link: AgentLink, run: Run) => {
  let groups: number[] = [];
  let rows: number[] = [];
  let attempts: number[] = [];
  let behinds: (Behind | null)[] = [];
  let followed = false;

  return {
    /** False if it has to be assigned by itself. */
    take: (group: Group, row: Row, behind: Behind | undefined, isFollowed: boolean): boolean => {
      if (!link.singles || !isSingle(group) || !isUniform(group)) return false;
      const page = touch(run.table, row);
      const slot = row % run.table.pageRows;
      if ((page.flags[slot]! & Flag.ALONE) !== 0) return false;
      if (page.agent[slot] !== link.id) return true;
      groups.push(group.index);
      rows.push(row);
      attempts.push(page.attempt[slot]!);
      behinds.push(behind ?? null);
      followed ||= isFollowed;
      return true;
    },
    send: (): void => {
      if (rows.length === 0) return;
      for (const index of groups) define(link, run, run.groups[index]!);
      link.channel?.send({
        t: "singles",
        run: run.id,
        groups,
        rows,
        attempts: attempts.every((attempt) => attempt === attempts[0]) ? attempts[0]! : attempts,
        ...(behinds.some((behind) => behind !== null) ? { behind: behinds } : {}),
        ...(followed ? { followed } : {}),
      });
      [groups, rows, attempts, behinds, followed] = [[], [], [], [], false];
    },
  };
};

/** A task that was handed ahead. */
interface Ahead {
  readonly run: Run;
  readonly group: Group;
  readonly row: Row;
  /** Undefined where what it waited for has ended well meanwhile. */
  readonly behind: Behind | undefined;
}

/** No attempt has this number: the agent gives back what lies behind it. */
const NEVER = 0;

const behindOf = (run: Run, group: Group, row: Row): Behind | undefined => {
  if (!isAhead(touch(run.table, row), row % run.table.pageRows)) return undefined;
  const before = oneBefore(run, group, row);
  // while this was on its way to the disk, what it waits for ended otherwise: it must not begin
  if (before === undefined) return { row, attempt: NEVER, only: false };
  const attempt = touch(run.table, before).attempt[before % run.table.pageRows]!;
  return { row: before, attempt, only: groupOf(run.groups, before).dependents.length === 1 };
};

function* aheadOf(state: State, parts: readonly RowRanges[]): Generator<Ahead> {
  for (const { run: id, ranges } of parts) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    for (let i = 0; i < ranges.length; i += 2)
      for (let row = ranges[i]!; row < ranges[i]! + ranges[i + 1]!; row += 1) {
        const group = groupOf(run.groups, row);
        yield { run, group, row, behind: behindOf(run, group, row) };
      }
  }
}

/** Rows of runs that tasks handed ahead lie behind. */
const followedIn = (all: readonly Ahead[]): ReadonlyMap<Run, ReadonlySet<Row>> => {
  const followed = new Map<Run, Set<Row>>();
  for (const { run, behind } of all) {
    if (behind === undefined) continue;
    const rows = followed.get(run);
    if (rows === undefined) followed.set(run, new Set([behind.row]));
    else rows.add(behind.row);
  }
  return followed;
};

/**
 * Sends a connected agent the tasks assigned to it: consecutive rows of one group in one message. Those handed ahead come
 * after what they wait for, one by one.
 */
export const sendAssignments = (
  state: State,
  link: AgentLink,
  parts: readonly RowRanges[],
  handedAhead: readonly RowRanges[] = [],
): void => {
  const ahead = [...aheadOf(state, handedAhead)];
  sendParts(state, link, parts, followedIn(ahead));
  for (const { run: id, ranges } of handedAhead) {
    const run = state.runs.get(id);
    if (run !== undefined) defineAll(link, run, groupsIn(run, ranges));
  }
  sendAhead(link, ahead);
};

const sendAhead = (link: AgentLink, ahead: readonly Ahead[]): void => {
  let singles: { readonly run: Run; readonly of: ReturnType<typeof gatherSingles> } | undefined;
  for (const { run, group, row, behind } of ahead) {
    if (singles?.run !== run) {
      singles?.of.send();
      singles = { run, of: gatherSingles(link, run) };
    }
    // more may be handed ahead behind it, whether or not it may begin at once
    if (singles.of.take(group, row, behind, behind === undefined)) continue;
    singles.of.send();
    const rows = noRows(group);
    addRows(rows, link, run, row, row + 1);
    assignRows(link, run, rows, behind === undefined ? { followed: true } : { behind });
  }
  singles?.of.send();
};

const isFollowed = (followed: ReadonlySet<Row> | undefined, ranges: readonly number[]): boolean => {
  if (followed === undefined) return false;
  for (const row of followed)
    for (let i = 0; i < ranges.length; i += 2) if (row >= ranges[i]! && row < ranges[i]! + ranges[i + 1]!) return true;
  return false;
};

const sendParts = (
  state: State,
  link: AgentLink,
  parts: readonly RowRanges[],
  followedRows: ReadonlyMap<Run, ReadonlySet<Row>>,
): void => {
  for (const { run: id, ranges } of parts) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    const rowsOfRun = followedRows.get(run);
    // of an array all that come together: an agent remembers a little more than it must
    const send = (rows: Rows): void =>
      assignRows(link, run, rows, isFollowed(rowsOfRun, rows.ranges) ? { followed: true } : {});
    defineAll(link, run, groupsIn(run, ranges));
    const singles = gatherSingles(link, run);
    let gathered: Rows | undefined;
    for (let i = 0; i < ranges.length; i += 2) {
      for (let row = ranges[i]!, end = row + ranges[i + 1]!; row < end;) {
        const group = groupOf(run.groups, row);
        const groupEnd = Math.min(end, group.first + group.count);
        if (gathered !== undefined && gathered.group !== group) {
          send(gathered);
          gathered = undefined;
        }
        if (singles.take(group, row, undefined, rowsOfRun?.has(row) === true)) {
          row = groupEnd;
          continue;
        }
        singles.send();
        if (gathered?.group !== group) gathered = noRows(group);
        if (group.spec.ranks === undefined) addRows(gathered, link, run, row, groupEnd);
        row = groupEnd;
      }
    }
    if (gathered !== undefined) send(gathered);
    singles.send();
  }
};
