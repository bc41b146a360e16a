import { oneBefore } from "../core/ahead.ts";
import type { RowRanges } from "../core/events.ts";
import { isAhead } from "../core/held.ts";
import { isJsonItems, itemsOf, storedAt } from "../core/item-source.ts";
import { setOf, timeLimitOf } from "../core/retry-set.ts";
import { type Group, type Run, groupOf, isUniform, shapeOfRow } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { Flag, touch } from "../core/table.ts";
import { encodeFrame } from "../protocol/frames.ts";
import type { Assign, Behind, Define, GroupTemplate, OutputLimits } from "../protocol/messages.ts";
import { inColumns } from "./alike.ts";
import type { AgentLink } from "./link.ts";
import type { Row } from "../core/ids.ts";

/** What an agent learns about its tasks: each group's template once per connection, then rows as ranges. */

/** Fewer tasks than this end within moments, and people may wait for each. */
const MANY = 100;
/** What an agent has for itself: when a task gives it back, no other agent can use it. */
const OWN: ReadonlySet<string> = new Set(["cpus", "gpus", "mem", "tmp"]);

const isPatient = ({ count, dependents, followers, shape }: Group): boolean => {
  if (count < MANY || dependents.length > 0 || followers.length > 0) return false;
  for (const name in shape.resources) if (!OWN.has(name)) return false;
  return true;
};

/** What most groups do not say is left out: a graph has as many templates as tasks. */
const template = (group: Group): GroupTemplate => {
  const { index, first, spec, shape, items } = group;
  const { name, command, env = {}, cwd, stdout, stderr, append, timeLimit, executor, pin, priority, colsep } = spec;
  const { resources } = shape;
  const made: { -readonly [K in keyof GroupTemplate]: GroupTemplate[K] } = {
    index,
    name,
    first,
    command,
    env,
    executor,
    priority,
    resources,
    json: isJsonItems(itemsOf(spec, items)),
  };
  if (cwd !== undefined) made.cwd = cwd;
  if (stdout !== undefined) made.stdout = stdout;
  if (stderr !== undefined) made.stderr = stderr;
  if (append !== undefined) made.append = append;
  if (spec.outputs !== undefined) made.outputs = spec.outputs;
  if (timeLimit !== undefined) made.timeLimit = timeLimit;
  if (pin !== undefined) made.pin = pin;
  if (spec.items.kind === "range") made.range = { from: spec.items.from, step: spec.items.step };
  if (colsep !== undefined) made.colsep = colsep;
  if (isPatient(group)) made.patient = true;
  return made;
};

const defineMessage = (run: Run, groups: readonly Group[]): Define => ({
  t: "define",
  run: run.id,
  runName: run.spec.name,
  cwd: run.spec.cwd,
  env: undefined,
  numbering: run.spec.numbering,
  groups: groups.map(template),
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
  const frame = encodeFrame({ ...defineMessage(run, [group]), ...(first ? { env: run.spec.env, output } : {}) });
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

/** Encodes ahead of time what `define` will send first of these: there is nothing else to do while the disk syncs. */
export const prepareDefinition = ({ runs }: State, link: AgentLink, [part]: readonly RowRanges[]): void => {
  const run = part === undefined ? undefined : runs.get(part.run);
  if (run === undefined) return;
  const group = groupOf(run.groups, part!.ranges[0]!);
  const known = link.defined.get(run.id);
  if (known?.has(group.index) !== true) definition(run, group, known === undefined, link.limitsOf(run));
};

/** In a graph each task may be a group of its own: those that one agent gets together are defined together. */
const MOST_TOGETHER = 1024;
/** Characters of commands and environments that go into one message, but for the last group's. */
const MOST_TEXT = 1_000_000;

const textOf = ({ spec: { command, env } }: Group): number => {
  let length = command.length;
  if (typeof command !== "string") for (const word of command) length += word.length;
  for (const name in env) length += name.length + env[name]!.length;
  return length;
};

/** Where the part of these groups ends that begins at `from`. */
const endOfPart = (groups: readonly Group[], from: number): number => {
  let end = from;
  for (let text = 0; end < groups.length && end - from < MOST_TOGETHER && text < MOST_TEXT; end += 1)
    text += textOf(groups[end]!);
  return end;
};

const defineAll = (link: AgentLink, run: Run, groups: readonly Group[]): void => {
  const unknown = groups.filter(({ index }) => link.defined.get(run.id)?.has(index) !== true);
  if (unknown.length < 3) return;
  // the run itself with the first of them
  define(link, run, unknown[0]!);
  const known = link.defined.get(run.id)!;
  for (let from = 1, end; from < unknown.length; from = end) {
    end = endOfPart(unknown, from);
    const some = unknown.slice(from, end);
    for (const { index } of some) known.add(index);
    const message = defineMessage(run, link.alike ? [] : some);
    link.channel?.sendFrame(encodeFrame(link.alike ? { ...message, ...inColumns(some, template) } : message));
  }
};

/**
 * Defines what tasks need that an agent gets as soon as that is on disk: it reads that meanwhile. Only of runs that it has heard
 * of: those are on disk, and their templates never change.
 */
export const defineSoon = (state: State, link: AgentLink, parts: readonly RowRanges[]): void => {
  for (const { run: id, ranges } of parts) {
    const run = link.defined.has(id) ? state.runs.get(id) : undefined;
    if (run !== undefined) defineAll(link, run, groupsIn(run, ranges));
  }
};

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

const groupsIn = (run: Run, ranges: readonly number[]): Group[] => {
  const found: Group[] = [];
  for (let i = 0; i < ranges.length; i += 2)
    for (let row = ranges[i]!, end = row + ranges[i + 1]!; row < end;) {
      const group = groupOf(run.groups, row);
      if (group !== found.at(-1)) found.push(group);
      row = group.first + group.count;
    }
  return found;
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
