import { oneBefore } from "../core/ahead.ts";
import type { RowRanges } from "../core/events.ts";
import { isAhead } from "../core/held.ts";
import { isJsonItems, itemsOf, storedAt } from "../core/item-source.ts";
import { setOf, timeLimitOf } from "../core/retry-set.ts";
import { type Group, type Run, groupOf, isUniform, shapeOfRow } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { Flag, touch } from "../core/table.ts";
import { encodeFrame } from "../protocol/frames.ts";
import type { Assign, Behind, Define, OutputLimits } from "../protocol/messages.ts";
import type { AgentLink } from "./link.ts";
import type { Row } from "../core/ids.ts";

/** What an agent learns about its tasks: each group's template once per connection, then rows as ranges. */

const template = (group: Group): Define["groups"][number] => ({
  index: group.index,
  name: group.spec.name,
  first: group.first,
  command: group.spec.command,
  env: group.spec.env ?? {},
  cwd: group.spec.cwd,
  stdout: group.spec.stdout,
  stderr: group.spec.stderr,
  append: group.spec.append,
  timeLimit: group.spec.timeLimit,
  executor: group.spec.executor,
  pin: group.spec.pin,
  priority: group.spec.priority,
  resources: group.shape.resources,
  range: group.spec.items.kind === "range" ? { from: group.spec.items.from, step: group.spec.items.step } : undefined,
  json: isJsonItems(itemsOf(group.spec, group.items)),
  ...(group.spec.colsep === undefined ? {} : { colsep: group.spec.colsep }),
});

interface Definition {
  readonly group: Group;
  readonly first: boolean;
  readonly over: boolean;
  readonly frame: Buffer;
}

/** One encoded definition of each run: agent after agent gets the same one, and it holds an environment. */
const encoded = new WeakMap<Run, Definition>();

const definition = (run: Run, group: Group, first: boolean, output: OutputLimits): Buffer => {
  const known = encoded.get(run);
  if (known?.group === group && known.first === first && known.over === output.over) return known.frame;
  const message: Define = {
    t: "define",
    run: run.id,
    runName: run.spec.name,
    cwd: run.spec.cwd,
    env: first ? run.spec.env : undefined,
    numbering: run.spec.numbering,
    groups: [template(group)],
    ...(first ? { output } : {}),
  };
  const frame = encodeFrame(message);
  encoded.set(run, { group, first, over: output.over, frame });
  return frame;
};

export const define = (link: AgentLink, run: Run, group: Group): void => {
  let known = link.defined.get(run.id);
  if (known?.has(group.index) === true) return;
  const first = known === undefined;
  if (known === undefined) link.defined.set(run.id, (known = new Set()));
  known.add(group.index);
  link.channel?.sendFrame(definition(run, group, first, link.limitsOf(run)));
};

/** Rows of one group for one agent. */
interface Rows {
  readonly group: Group;
  readonly ranges: number[];
  readonly attempts: number[];
  readonly alone: number[];
}

/** Adds the rows that this agent still has (some may have been cancelled while the journal was written). */
const addRows = ({ ranges, attempts, alone }: Rows, link: AgentLink, run: Run, from: number, end: number): void => {
  for (let row = from; row < end; row += 1) {
    const page = touch(run.table, row);
    const slot = row % run.table.pageRows;
    if (page.agent[slot] !== link.id) continue;
    if (ranges.length > 0 && ranges.at(-2)! + ranges.at(-1)! === row) ranges[ranges.length - 1]! += 1;
    else ranges.push(row, 1);
    attempts.push(page.attempt[slot]!);
    if ((page.flags[slot]! & Flag.ALONE) !== 0) alone.push(row);
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
  { group, ranges, attempts, alone }: Rows,
  more: Pick<Assign, "behind" | "followed"> = {},
): void => {
  if (attempts.length === 0) return;
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
    attempts: attempts.every((attempt) => attempt === attempts[0]) ? attempts[0]! : attempts,
    ...(isSent ? { items: rows().map((row) => storedAt(items, row - group.first)!) } : {}),
    ...(isUniform(group) ? {} : { resources: rows().map((row) => shapeOfRow(group, row).resources) }),
    ...timeLimits(group, rows),
    ...(alone.length === 0 ? {} : { alone }),
    ...more,
  };
  link.channel?.send(message);
};

/** A task that was handed ahead. */
interface Ahead {
  readonly run: Run;
  readonly group: Group;
  readonly row: Row;
  /** Undefined where what it waited for has ended well meanwhile. */
  readonly behind: Behind | undefined;
}

const behindOf = (run: Run, group: Group, row: Row): Behind | undefined => {
  if (!isAhead(touch(run.table, row), row % run.table.pageRows)) return undefined;
  const before = oneBefore(run, group, row);
  if (before === undefined) return undefined;
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
  for (const { run, group, row, behind } of ahead) {
    const rows: Rows = { group, ranges: [], attempts: [], alone: [] };
    addRows(rows, link, run, row, row + 1);
    // more may be handed ahead behind it, whether or not it may begin at once
    assignRows(link, run, rows, behind === undefined ? { followed: true } : { behind });
  }
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
    let gathered: Rows | undefined;
    for (let i = 0; i < ranges.length; i += 2) {
      for (let row = ranges[i]!, end = row + ranges[i + 1]!; row < end;) {
        const group = groupOf(run.groups, row);
        const groupEnd = Math.min(end, group.first + group.count);
        if (gathered !== undefined && gathered.group !== group) send(gathered);
        if (gathered?.group !== group) gathered = { group, ranges: [], attempts: [], alone: [] };
        if (group.spec.ranks === undefined) addRows(gathered, link, run, row, groupEnd);
        row = groupEnd;
      }
    }
    if (gathered !== undefined) send(gathered);
  }
};
