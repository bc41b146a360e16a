import { peakOf } from "./peak.ts";
import { placeOf } from "./rank-places.ts";
import { USAGE_COLUMNS, usageAt } from "./usage.ts";
import { shapeKey } from "./resources.ts";
import { setsInUse } from "./retry-set.ts";
import { type Group, type Run, isFinishedRun } from "./run.ts";
import type { Agent, RunSummary, State } from "./state.ts";
import { TASK_STATES, Task } from "./states.ts";
import { type Page, peek } from "./table.ts";
import { isOver } from "./task-job.ts";
import type { Row } from "./ids.ts";

/**
 * Where two states differ that should be equal: one read from a snapshot and the events after it, the other from all
 * events. This compares what a state says, not how it is stored: a run may be in memory here and in the archive there.
 */
export interface Side {
  readonly state: State;
  /** Reads a run from the archive. */
  restore(summary: RunSummary): Run;
}

export interface Difference {
  /** `run 2, task 0: state`. */
  readonly what: string;
  /** As each side has it. */
  readonly values: readonly [string, string];
}

const LONGEST = 200;

/** A value as text, so that equal values give equal texts: keys in order, maps and columns as lists. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) => {
    if (inner instanceof Map) return [...(inner as Map<unknown, unknown>)];
    if (ArrayBuffer.isView(inner)) return [...(inner as unknown as Iterable<number>)];
    if (typeof inner !== "object" || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }) ?? "nothing";

const shortened = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

type Found = (what: string, a: unknown, b: unknown) => void;

/** The first `most` differences, in order of ids. */
export const compareStates = (a: Side, b: Side, most = 20): Difference[] => {
  const found: Difference[] = [];
  const compare: Found = (what, left, right) => {
    if (found.length >= most || left === right) return;
    const values = [textOf(left), textOf(right)] as const;
    if (values[0] !== values[1]) found.push({ what, values: [shortened(values[0]), shortened(values[1])] });
  };
  /** `mayLack`: only one side may have this. */
  const maps = <V>(
    name: string,
    of: (state: State) => ReadonlyMap<unknown, V>,
    facts: (value: V) => unknown,
    mayLack: (value: V) => boolean = () => false,
  ): void => {
    const [left, right] = [of(a.state), of(b.state)];
    for (const key of new Set([...left.keys(), ...right.keys()])) {
      const [one, other] = [left.get(key), right.get(key)];
      if (one === undefined && other !== undefined && mayLack(other)) continue;
      if (other === undefined && one !== undefined && mayLack(one)) continue;
      compare(
        `${name} ${String(key)}`,
        one === undefined ? null : facts(one),
        other === undefined ? null : facts(other),
      );
    }
  };
  const same = <V>(value: V): V => value;
  for (const key of ["epoch", "nextRun", "nextAgent", "nextPilot", "nextLaunch", "nextTaskJob"] as const)
    compare(key, a.state[key], b.state[key]);
  maps("agent", ({ agents }) => agents, same, mayBeForgotten);
  maps(
    "agent with the uuid",
    ({ agents, agentByUuid }) => new Map([...agentByUuid].map(([uuid, id]) => [uuid, agents.get(id)])),
    (agent) => agent?.id,
    mayBeForgotten,
  );
  maps("job of tasks", ({ taskJobs }) => taskJobs, same, isOver);
  // snapshots of earlier versions do not say when a pilot came to which state
  maps(
    "pilot",
    ({ pilots }) => pilots,
    (pilot) => ({ ...pilot, stays: undefined }),
  );
  maps("launch", ({ launches }) => launches, same);
  maps("launch with the uuid", ({ launchByUuid }) => launchByUuid, same);
  maps("ranks of task", ({ gangs }) => gangs, same);
  maps(
    "draft of run",
    ({ drafts }) => drafts,
    ({ opened, items }) => [opened, [...items].map(([n, all]) => [n, ...all])],
  );
  compare("what outputs came from", a.state.successes.digest(), b.state.successes.digest());
  maps("run with the uuid", ({ byUuid }) => byUuid, same);
  maps("what waits for run", linksOf, same);
  const ids = [a, b].flatMap(({ state }) => [...state.runs.keys(), ...state.archived.keys()]);
  for (const id of [...new Set(ids)].toSorted((one, other) => one - other)) {
    if (found.length >= most) break;
    const [left, right] = [runOf(a, id), runOf(b, id)];
    if (left === undefined || right === undefined) compare(`run ${id}`, left?.spec.name, right?.spec.name);
    else compareRuns(left, right, compare);
  }
  return found;
};

/** An agent of a task's job goes with the details of its run: sooner on one side than on the other. */
const mayBeForgotten = (agent: Agent | undefined): boolean => agent?.taskJob !== undefined && agent.ended > 0;

const runOf = ({ state, restore }: Side, id: number): Run | undefined => {
  const summary = state.archived.get(id);
  return state.runs.get(id) ?? (summary === undefined ? undefined : restore(summary));
};

/** Groups that wait for each run, without those that no longer wait: settling skips them anyway. */
const linksOf = (state: State): ReadonlyMap<number, readonly string[]> => {
  const links = new Map<number, readonly string[]>();
  for (const [id, list] of state.runDependents) {
    const open = list.filter(({ run: waiting, group }) => {
      const run = state.runs.get(waiting);
      const waits = run?.groups[group];
      return run !== undefined && !isFinishedRun(run) && waits?.base === Task.NEW && waits.waits > 0;
    });
    const texts = open.map(({ run, group, on }) => `run ${run}, group ${group}, ${on}`);
    if (texts.length > 0) links.set(id, texts.toSorted());
  }
  return links;
};

const HEAD = [
  "uuid",
  "spec",
  "submitted",
  "started",
  "finished",
  "idle",
  "canceled",
  "unneeded",
  "skipped",
  "retries",
  "losses",
  "counts",
  "digest",
  "outputBytes",
  "lost",
] as const;

const GROUP = ["count", "base", "waits", "done", "failed", "canceled", "cpu"] as const;

const compareRuns = (a: Run, b: Run, compare: Found): void => {
  for (const key of HEAD) compare(`run ${a.id}: ${key}`, a[key], b[key]);
  for (const [i, group] of a.groups.entries()) {
    const other = b.groups[i];
    for (const key of GROUP) compare(`run ${a.id}, group ${group.spec.name}: ${key}`, group[key], other?.[key]);
    compare(`run ${a.id}, group ${group.spec.name}: items`, itemsOf(group.items), itemsOf(other?.items));
    compare(`run ${a.id}, group ${group.spec.name}: later amounts`, laterOf(group), laterOf(other));
    compare(`run ${a.id}, group ${group.spec.name}: links`, linksIn(group), linksIn(other));
    compare(`run ${a.id}, group ${group.spec.name}: learned amounts`, learnedOf(group), learnedOf(other));
    compare(`run ${a.id}, group ${group.spec.name}: contents of inputs`, group.contents, other?.contents);
    compare(`run ${a.id}, group ${group.spec.name}: amounts of a retry`, setsOf(group), setsOf(other));
  }
  for (const key of ["history", "rankOutputs"] as const)
    for (const row of new Set([...a[key].keys(), ...b[key].keys()]))
      compare(`run ${a.id}, row ${row}: ${key}`, a[key].get(row), b[key].get(row));
  const end = Math.min(a.total, b.total);
  for (let row = 0; row < end;) {
    const pageEnd = Math.min(end, row + a.table.pageRows - (row % a.table.pageRows));
    // rows untouched on both sides are in their group's base state, which was compared
    if (peek(a.table, row) === undefined && peek(b.table, row) === undefined) row = pageEnd;
    for (; row < pageEnd; row += 1) compareRows(a, b, row, compare);
  }
};

const itemsOf = (items: Iterable<string> | undefined): string[] | null => (items === undefined ? null : [...items]);

/** Whom its tasks wait for one by one, and what has ended of that. */
const linksIn = (group: Group | undefined): unknown =>
  group?.links.map(({ before, pairing }) =>
    pairing.kind === "keyed" ? [before, pairing.ended, pairing.bad] : [before, pairing.kind],
  );

/** What later attempts ask for, by row. */
const laterOf = (group: Group | undefined): [Row, string][] =>
  [...(group?.laterShapes ?? [])]
    .toSorted(([one], [other]) => one - other)
    .map(([row, { resources }]) => [row, `${shapeKey(resources)} ${group?.memory.get(row)?.kills ?? 0}`]);

/** What was learned that its tasks ask for, and what each of them had. */
const learnedOf = (group: Group | undefined): unknown =>
  group?.learned === undefined
    ? null
    : [group.learned.versions.map(({ mem, timeRequest }) => [mem, timeRequest]), group.learned.rows];

/** What `retry --set` gave its tasks. */
const setsOf = (group: Group | undefined): unknown => {
  const used = group === undefined ? undefined : setsInUse(group);
  return used === undefined ? null : [used.sets.map((set) => set ?? null), used.rows];
};

type Column = Exclude<keyof Page, "buffer" | "state" | "reason">;

/** Every column of a row, with the value it has in an untouched row. */
const UNTOUCHED: Readonly<Record<Column, number>> = {
  assigned: 0,
  started: 0,
  finished: 0,
  outAt: -1,
  outBytes: 0,
  errBytes: 0,
  agent: 0,
  attempt: 0,
  fails: 0,
  exit: -1,
  flags: 0,
  losses: 0,
  signal: 0,
};

const COLUMNS = Object.keys(UNTOUCHED) as Column[];

const compareRows = (a: Run, b: Run, row: Row, compare: Found): void => {
  const [left, right] = [peek(a.table, row), peek(b.table, row)];
  const slots = [row % a.table.pageRows, row % b.table.pageRows] as const;
  const stateIn = (run: Run, page: Page | undefined, slot: number): string | undefined =>
    TASK_STATES[page === undefined ? run.table.baseState(row) : page.state[slot]!];
  const reasonIn = (run: Run, page: Page | undefined, slot: number): string =>
    page === undefined ? "" : (run.reasons[page.reason[slot]!] ?? "");
  const facts = (what: string, one: unknown, other: unknown): void => {
    if (one !== other) compare(`run ${a.id}, row ${row}: ${what}`, one, other);
  };
  const peaks = [peakOf(a, row), peakOf(b, row)] as const;
  facts("peak", peaks[0]?.bytes, peaks[1]?.bytes);
  facts("who saw its peak", peaks[0]?.by, peaks[1]?.by);
  facts("where its ranks are", JSON.stringify(placeOf(a, row)), JSON.stringify(placeOf(b, row)));
  const usage = [usageAt(a, row), usageAt(b, row)] as const;
  for (const name of USAGE_COLUMNS) facts(`usage: ${name}`, usage[0]?.[name], usage[1]?.[name]);
  facts("state", stateIn(a, left, slots[0]), stateIn(b, right, slots[1]));
  facts("reason", reasonIn(a, left, slots[0]), reasonIn(b, right, slots[1]));
  for (const column of COLUMNS) {
    const empty = UNTOUCHED[column];
    facts(column, left?.[column][slots[0]] ?? empty, right?.[column][slots[1]] ?? empty);
  }
};
