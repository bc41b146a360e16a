import { amountOf } from "./resources.ts";
import type { RowShapes } from "./row-shapes.ts";
import { type Condition, type GroupSpec, type RunSpec, itemCount, taskCount } from "./spec.ts";
import { TASK_STATES, Task } from "./states.ts";
import type { RankOutput } from "./gangs.ts";
import type { GroupCounts } from "./group-counts.ts";
import { type LostRows, type OutputLost, lostOf, noneLost } from "./output-lost.ts";
import { type CpuTime, noCpuTime } from "./cpu-time.ts";
import { type Peak, type PeakPage, peakOf } from "./peak.ts";
import { type RankPlaces, noPlaces } from "./rank-places.ts";
import { type Usage, type UsagePage, usageAt } from "./usage.ts";
import { type ItemLink, type Pairings, linkGroups } from "./item-links.ts";
import type { PackedItems } from "./items.ts";
import { type RetrySets, setOf } from "./retry-set.ts";
import { type Table, createTable, touch } from "./table.ts";
import { type Bucket, type Shape, type ShapeSet, createShapeSet, sameShape } from "./task-shapes.ts";
import type { Agent } from "./state.ts";
import type { AgentId, Row, RunId } from "./ids.ts";

export {
  type Bucket,
  type Shape,
  type ShapeSet,
  createShapeSet,
  keyOf,
  sameBucket,
  sameShape,
  shapeOf,
} from "./task-shapes.ts";

export interface MemoryGiven {
  readonly kills: number;
  /** Bytes. */
  readonly mem: number;
}

/** What tasks of a group asked for one after the other: each keeps what it had when its attempt began. */
export interface LearnedAmounts {
  readonly versions: AmountVersion[];
  /** By row of the group: the number of the version of its attempt, counted from 1; 0: it asks for the latest. */
  readonly rows: Uint8Array;
}

/** Undefined: what the run's file says. */
export interface AmountVersion {
  readonly mem: number | undefined;
  readonly timeRequest: number | undefined;
  /** By what the group asks for. */
  readonly shapes: Map<Shape, Shape>;
}

/** An earlier attempt of a task; the latest one is in the table. */
export interface Attempt {
  readonly n: number;
  readonly agent: AgentId;
  readonly assigned: number;
  readonly started: number;
  readonly finished: number;
  readonly exit: number;
  readonly signal: number;
  readonly reason: string;
  readonly lost: boolean;
  /** The task's state at its end, or now; absent in earlier attempts that older versions wrote. */
  readonly state?: number;
  readonly outAt: number;
  readonly outBytes: number;
  readonly errBytes: number;
  readonly outputLost?: OutputLost;
  readonly peak?: Peak;
  readonly usage?: Usage;
  /** Bytes it was given, where attempts of one task may differ. */
  readonly mem?: number;
}

/** The tasks of one entry of a run's file: rows `first … first+count-1`, sharing one template. */
export interface Group {
  readonly index: number;
  readonly spec: GroupSpec;
  readonly first: number;
  readonly count: number;
  readonly items: PackedItems | undefined;
  /** One shape for all, or one for each row when resources depend on the item. */
  readonly shape: Shape;
  readonly rowShapes: RowShapes | undefined;
  /** Rows whose latest attempt, or next one, asks for something else than their first did. */
  laterShapes: ReadonlyMap<Row, Shape>;
  readonly laterSet: ShapeSet;
  /** Rows that were killed for memory and tried again: how often, and what they get since. */
  memory: ReadonlyMap<Row, MemoryGiven>;
  /** What its tasks ask for, where that is learned and has changed since the run was submitted. */
  learned: LearnedAmounts | undefined;
  /** What `retry --set` gave its tasks. */
  sets: RetrySets | undefined;
  /** With `skip: content`, by place: what was in the inputs of each task before it began; 0: nobody has looked. */
  contents: Float64Array | undefined;
  /** What its tasks that ended well kept busy. */
  readonly cpu: CpuTime;
  /** Groups that wait for it: for all of it, or task by task where there is a link. */
  readonly dependents: { readonly group: number; readonly on: Condition; readonly link: ItemLink | undefined }[];
  /** What its tasks wait for one by one, each for those of its item; and the other ends of such links. */
  readonly links: ItemLink[];
  readonly followers: ItemLink[];
  /** State of untouched rows: NEW while dependencies are open, then PENDING; with links always NEW. */
  base: number;
  /** Dependencies on whole groups and runs that are not yet met; -1: one never will be. */
  waits: number;
  done: number;
  failed: number;
  canceled: number;
  /** Milliseconds that one of its tasks is expected to take; -1 while nothing is known. Advice, no history (0030). */
  expectedMs: number;
}

export interface Run {
  readonly id: RunId;
  readonly uuid: string;
  readonly spec: RunSpec;
  readonly submitted: number;
  readonly total: number;
  readonly groups: readonly Group[];
  readonly table: Table;
  /** Tasks per state code. */
  readonly counts: Float64Array;
  /** The same for each group, from when somebody first asks. */
  groupCounts: GroupCounts | undefined;
  /** Earlier attempts that are kept (past-attempts.ts), only of tasks that had more than one. */
  history: ReadonlyMap<Row, Attempt[]>;
  /** Output of ranks that ran on other agents than their attempt's own. */
  rankOutputs: ReadonlyMap<Row, RankOutput[]>;
  /** Output that was not kept. */
  readonly lost: LostRows;
  /** Peak memory of the latest attempts, by page of the table; that of earlier ones is in the history. */
  readonly peaks: Map<number, PeakPage>;
  /** What the latest attempts used beside memory, in the same way. */
  readonly usage: Map<number, UsagePage>;
  /** Which agents have, or had, the ranks of latest attempts. */
  readonly places: RankPlaces;
  /** The agents of its tasks' jobs, where the state has forgotten them (task-job.ts): each had one attempt. */
  agents: ReadonlyMap<AgentId, Agent>;
  /** Bytes of output that all attempts have left, as reported when they ended. */
  outputBytes: number;
  /** Interned texts; index 0 is "no reason". */
  readonly reasons: string[];
  reasonIds: ReadonlyMap<string, number>;
  /** Digest of the document it was submitted with; empty where it was not kept. */
  digest: string;
  started: number;
  finished: number;
  /** Milliseconds between its ends and the retries that followed: no part of the time it took. */
  idle: number;
  canceled: string;
  /** Moving average of what its tasks took, for groups about which nothing is known; -1 while none ended. Advice too. */
  meanMs: number;
  unneeded: number;
  /** Tasks that are DONE without having run. */
  skipped: number;
  retries: number;
  losses: number;
}

export interface GroupInput {
  readonly items: PackedItems | undefined;
  /** One for each row, when what it asks for depends on the item. */
  readonly rowShapes: RowShapes | undefined;
}

/** What most runs and groups have nothing in, and there may be many of them: one for all, which nobody writes to. */
const NONE: ReadonlyMap<never, never> = new Map<never, never>();

/** The same map to write to, or a new one in place of that for all. */
export const ownMap = <K, V>(map: ReadonlyMap<K, V>): Map<K, V> =>
  (map as ReadonlyMap<unknown, unknown>) === NONE ? new Map<K, V>() : (map as Map<K, V>);

/** Made when the first of its shapes is: most runs never ask for others than their first. */
const laterShapeSet = (): ShapeSet => {
  let made: ShapeSet | undefined;
  return { of: (spec, resources, alone) => (made ??= createShapeSet()).of(spec, resources, alone) };
};

/** Apart from the function that makes a run: all that lies beside it there would be kept for as long as the run. */
const baseOf =
  (groups: readonly Group[]) =>
  (row: Row): number =>
    groupOf(groups, row).base;

/** A run as it stands right after its submission: all tasks NEW, dependencies counted, nothing evaluated yet. */
export const createRun = (
  id: number,
  uuid: string,
  spec: RunSpec,
  submitted: number,
  inputs: ReadonlyMap<number, GroupInput>,
  pairings: Pairings = new Map(),
): Run => {
  let first = 0;
  // the set of the first shapes is not kept for as long as the run: there may be as many as groups
  const shapes = createShapeSet();
  const laterSet = laterShapeSet();
  const groups = spec.groups.map((group, index): Group => {
    const count = itemCount(group.items);
    const input = inputs.get(index);
    const made: Group = {
      index,
      spec: group,
      first,
      count,
      items: input?.items,
      shape: shapes.of(group, group.resources),
      rowShapes: input?.rowShapes,
      laterShapes: NONE,
      laterSet,
      memory: NONE,
      learned: undefined,
      sets: undefined,
      contents: undefined,
      cpu: noCpuTime(),
      dependents: [],
      links: [],
      followers: [],
      base: Task.NEW,
      waits: group.after.length,
      done: 0,
      failed: 0,
      canceled: 0,
      expectedMs: -1,
    };
    first += count;
    return made;
  });
  linkGroups(groups, pairings);
  const counts = new Float64Array(TASK_STATES.length);
  counts[Task.NEW] = first;
  const total = taskCount(spec);
  return {
    id,
    uuid,
    spec,
    submitted,
    total,
    groups,
    table: createTable(total, baseOf(groups)),
    counts,
    groupCounts: undefined,
    history: NONE,
    rankOutputs: NONE,
    lost: noneLost(),
    peaks: new Map(),
    usage: new Map(),
    places: noPlaces(),
    agents: NONE,
    outputBytes: 0,
    reasons: [""],
    reasonIds: NONE,
    digest: "",
    started: 0,
    finished: 0,
    idle: 0,
    canceled: "",
    meanMs: -1,
    unneeded: 0,
    skipped: 0,
    retries: 0,
    losses: 0,
  };
};

/** The group that holds a row. */
export const groupOf = (groups: readonly Group[], row: Row): Group => {
  let low = 0;
  let high = groups.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (groups[middle]!.first <= row) low = middle;
    else high = middle - 1;
  }
  return groups[low]!;
};

const versionOf = (
  { spec, laterSet, rowShapes }: Group,
  asked: Shape,
  { mem, timeRequest, shapes }: AmountVersion,
): Shape => {
  if (mem === undefined && timeRequest === undefined) return asked;
  // those of items are made anew each time
  let shape = rowShapes === undefined ? shapes.get(asked) : undefined;
  if (shape === undefined) {
    const resources = mem === undefined ? asked.resources : { ...asked.resources, mem };
    shape = laterSet.of(timeRequest === undefined ? spec : { ...spec, timeRequest }, resources, asked.alone);
    if (rowShapes === undefined) shapes.set(asked, shape);
  }
  return shape;
};

/** What a row asks for that did not fail and was not killed. */
export const baseShapeOf = (group: Group, row: Row): Shape => {
  const asked = group.rowShapes === undefined ? group.shape : group.rowShapes.at(row - group.first);
  if (group.learned === undefined) return asked;
  const { versions, rows } = group.learned;
  const number = rows[row - group.first]!;
  return versionOf(group, asked, number === 0 ? versions.at(-1)! : versions[number - 1]!);
};

/** What the tasks of a group without shapes per item ask for that have not begun. */
export const waitingShapeOf = (group: Group): Shape =>
  group.learned === undefined ? group.shape : versionOf(group, group.shape, group.learned.versions.at(-1)!);

/** What the latest attempt of a row asks for, or the next one if that has ended. */
export const shapeOfRow = (group: Group, row: Row): Shape => {
  const { laterShapes } = group;
  return (laterShapes.size === 0 ? undefined : laterShapes.get(row)) ?? baseShapeOf(group, row);
};

/** The bucket of that. */
export const bucketOfRow = (group: Group, row: Row): Bucket => {
  const { rowShapes, laterShapes, learned } = group;
  return rowShapes === undefined || laterShapes.size > 0 || learned !== undefined
    ? shapeOfRow(group, row).bucket
    : rowShapes.bucketAt(row - group.first);
};

/** Whether two rows of a group ask for the same. */
export const askAlike = (group: Group, row: Row, other: Row): boolean => {
  const { rowShapes, laterShapes, learned, first } = group;
  return rowShapes === undefined || laterShapes.size > 0 || learned !== undefined
    ? sameShape(shapeOfRow(group, row), shapeOfRow(group, other))
    : rowShapes.areAlike(row - first, other - first);
};

/** Whether all rows of a group ask for the same, and always did. */
export const isUniform = ({ rowShapes, laterShapes, learned }: Group): boolean =>
  rowShapes === undefined && laterShapes.size === 0 && learned === undefined;

/** The number people see for a row, and back. */
export const indexOfRow = (run: Run, row: Row): number => run.spec.numbering.start + row * run.spec.numbering.step;

export const rowOfIndex = (run: Run, index: number): number | undefined => {
  const row = (index - run.spec.numbering.start) / run.spec.numbering.step;
  return Number.isInteger(row) && row >= 0 && row < run.total ? row : undefined;
};

export const internReason = (run: Run, reason: string): number => {
  if (reason === "") return 0;
  const known = run.reasonIds.get(reason);
  if (known !== undefined) return known;
  run.reasons.push(reason);
  run.reasonIds = ownMap(run.reasonIds).set(reason, run.reasons.length - 1);
  return run.reasons.length - 1;
};

/** Whether attempts of one task may have different amounts of memory. */
const differsByAttempt = (group: Group, row: Row): boolean => {
  const { memRetry, attemptResources, auto } = group.spec;
  if (auto?.mem === true || memRetry !== undefined || attemptResources?.["mem"] !== undefined) return true;
  return setOf(group, row)?.resources?.["mem"] !== undefined;
};

/** The attempt in the table, as a record of its own. */
export const latestAttempt = (run: Run, row: Row, lost: boolean): Attempt => {
  const page = touch(run.table, row);
  const slot = row % run.table.pageRows;
  const outputLost = lostOf(run, row);
  const peak = peakOf(run, row);
  const usage = usageAt(run, row);
  const group = groupOf(run.groups, row);
  const mem = differsByAttempt(group, row) ? amountOf(shapeOfRow(group, row).resources, "mem") : 0;
  return {
    n: page.attempt[slot]!,
    agent: page.agent[slot]!,
    assigned: page.assigned[slot]!,
    started: page.started[slot]!,
    finished: page.finished[slot]!,
    exit: page.exit[slot]!,
    signal: page.signal[slot]!,
    reason: run.reasons[page.reason[slot]!] ?? "",
    lost,
    state: page.state[slot]!,
    outAt: page.outAt[slot]!,
    outBytes: page.outBytes[slot]!,
    errBytes: page.errBytes[slot]!,
    ...(outputLost === undefined ? {} : { outputLost }),
    ...(peak === undefined ? {} : { peak }),
    ...(usage === undefined ? {} : { usage }),
    ...(mem === 0 ? {} : { mem }),
  };
};

export const isFinishedRun = (run: Run): boolean => run.finished > 0;

export type RunState = "WAITING" | "RUNNING" | "DONE" | "FAILED" | "CANCELED";

export const runState = (run: Run): RunState => {
  if (run.finished === 0) return run.started === 0 ? "WAITING" : "RUNNING";
  if (run.counts[Task.FAILED]! > 0) return "FAILED";
  return run.counts[Task.CANCELED]! > run.unneeded ? "CANCELED" : "DONE";
};

/** Milliseconds that a task of a group is expected to take; -1 if nothing is known. */
export const expectedMs = (run: Run, group: Group): number => (group.expectedMs < 0 ? run.meanMs : group.expectedMs);
