import { MOST_STAGES, type StageQuery, type StagePage, type StageView, type StagesView } from "../api/stages.ts";
import { countsOfGroup, countsOfGroups } from "../core/group-counts.ts";
import { type Group, type Run, expectedMs, indexOfRow } from "../core/run.ts";
import { TASK_STATES, Task } from "../core/states.ts";
import { peek } from "../core/table.ts";

/** A run's graph by stages. What it costs depends on groups, never on tasks. */

/** Groups that are shown as one. */
interface Fold {
  readonly index: number;
  /** The first and the last of its levels, counted from 1. */
  readonly levels: readonly [number, number];
  readonly groups: Group[];
  readonly after: Set<number>;
}

/** How far each group is from the beginning: behind the farthest that it waits for. */
const levelsOf = (groups: readonly Group[]): Uint32Array => {
  const level = new Uint32Array(groups.length);
  const open = new Uint32Array(groups.length);
  const free: number[] = [];
  for (const { index, spec } of groups) {
    open[index] = spec.after.reduce((sum, each) => sum + ("group" in each ? 1 : 0), 0);
    if (open[index] === 0) free.push(index);
  }
  for (let at = 0; at < free.length; at += 1) {
    const from = free[at]!;
    for (const { group } of groups[from]!.dependents) {
      level[group] = Math.max(level[group]!, level[from]! + 1);
      open[group]! -= 1;
      if (open[group] === 0) free.push(group);
    }
  }
  return level;
};

interface Graph {
  readonly level: Uint32Array;
  readonly folds: readonly Fold[];
}

const graphOf = ({ groups }: Run): Graph => {
  const level = levelsOf(groups);
  const levels = level.reduce((most, each) => Math.max(most, each), 0) + 1;
  const bands = Math.min(levels, MOST_STAGES);
  const bandOf = (group: number): number => Math.floor((level[group]! * bands) / levels);
  const folds = Array.from({ length: bands }, (_, index): Fold => {
    const first = Math.ceil((index * levels) / bands) + 1;
    return { index, levels: [first, Math.ceil(((index + 1) * levels) / bands)], groups: [], after: new Set() };
  });
  for (const group of groups) {
    const fold = folds[bandOf(group.index)]!;
    fold.groups.push(group);
    for (const each of group.spec.after) {
      const band = "group" in each ? bandOf(each.group) : fold.index;
      if (band !== fold.index) fold.after.add(band);
    }
  }
  return { level, folds };
};

/** What a run's groups are is decided when it is submitted. */
const known = new WeakMap<Run, Graph>();

const graphOfRun = (run: Run): Graph => {
  let graph = known.get(run);
  if (graph === undefined) known.set(run, (graph = graphOf(run)));
  return graph;
};

const MOST_SAMPLES = 500;

/** The seconds in the middle of what tasks of these groups took that are done, from some that are spread evenly. */
export const medianOf = (run: Run, groups: readonly Group[]): number | null => {
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  const step = Math.max(1, total / MOST_SAMPLES);
  const took: number[] = [];
  let before = 0;
  let place = 0;
  for (let at = 0; Math.floor(at) < total && place < groups.length; at += step) {
    while (Math.floor(at) - before >= groups[place]!.count) {
      before += groups[place]!.count;
      place += 1;
    }
    const row = groups[place]!.first + Math.floor(at) - before;
    const page = peek(run.table, row);
    const slot = row % run.table.pageRows;
    if (page === undefined || page.state[slot] !== Task.DONE || page.started[slot] === 0) continue;
    took.push(Math.max(0, page.finished[slot]! - page.started[slot]!));
  }
  if (took.length === 0) return null;
  took.sort((a, b) => a - b);
  return Math.round(took[Math.floor(took.length / 2)]!) / 1000;
};

/** The seconds in the middle, as somebody remembers them. */
export type Medians = (key: number, groups: readonly Group[]) => number | null;

const expectedOf = (run: Run, groups: readonly Group[]): number | null => {
  let sum = 0;
  let tasks = 0;
  for (const group of groups) {
    const ms = expectedMs(run, group);
    if (ms < 0) continue;
    sum += ms * group.count;
    tasks += group.count;
  }
  return tasks === 0 ? null : Math.round(sum / tasks) / 1000;
};

const viewOf = (
  run: Run,
  groups: readonly Group[],
  which: Pick<StageView, "index" | "kind" | "name" | "level" | "after">,
  median: number | null,
): StageView => {
  const all = countsOfGroups(run);
  const sums = new Float64Array(TASK_STATES.length);
  for (const { index } of groups) {
    const of = countsOfGroup(all, index);
    for (let code = 0; code < sums.length; code += 1) sums[code]! += of[code]!;
  }
  const counts: Record<string, number> = {};
  for (const [code, name] of TASK_STATES.entries()) if (sums[code]! > 0) counts[name] = sums[code]!;
  const last = groups.at(-1);
  return {
    ...which,
    total: sums.reduce((sum, each) => sum + each, 0),
    counts,
    seconds: { p50: median, expected: expectedOf(run, groups) },
    first: indexOfRow(run, groups[0]?.first ?? 0),
    last: indexOfRow(run, Math.max(0, last === undefined ? 0 : last.first + last.count - 1)),
    groups: groups.length,
  };
};

const groupStage = (run: Run, group: Group, medians: Medians): StageView => {
  const { index, spec } = group;
  const after = spec.after.flatMap((each) => ("group" in each ? [each.group] : [])).slice(0, MOST_STAGES);
  const level = graphOfRun(run).level[index]! + 1;
  return viewOf(run, [group], { index, kind: "group", name: spec.name, level, after }, medians(index, [group]));
};

const foldStage = (run: Run, { index, levels: [first, last], groups, after }: Fold, medians: Medians): StageView => {
  const name = first === last ? `level ${first}` : `levels ${first} to ${last}`;
  const which = { index, kind: "fold" as const, name, level: first, after: [...after].toSorted((a, b) => a - b) };
  // folds and groups are told apart by their sign
  return viewOf(run, groups, which, medians(-1 - index, groups));
};

export const stageViews = (run: Run, medians: Medians): StagesView => {
  const folded = run.groups.length > MOST_STAGES;
  return {
    stages: folded
      ? graphOfRun(run).folds.map((fold) => foldStage(run, fold, medians))
      : run.groups.map((group) => groupStage(run, group, medians)),
    folded,
  };
};

/** All stages, or the groups of one fold, page by page. */
export const stagePage = (run: Run, { level, cursor = 0, limit }: StageQuery, medians: Medians): StagePage => {
  if (level === undefined) return { ...stageViews(run, medians), next: null };
  const { groups } = graphOfRun(run).folds[level] ?? { groups: [] };
  const page = groups.slice(cursor, cursor + limit);
  const next = cursor + limit < groups.length ? cursor + limit : null;
  return { stages: page.map((group) => groupStage(run, group, medians)), folded: false, next };
};
