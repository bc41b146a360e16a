import type { RunRequests } from "../core/events.ts";
import type { MemoryAdvice } from "../core/memory-retry.ts";
import { amountOf } from "../core/resources.ts";
import { type Group, type Run, waitingShapeOf } from "../core/run.ts";
import type { GroupSpec } from "../core/spec.ts";
import { isFinalTask } from "../core/states.ts";
import { stateOf } from "../core/table.ts";
import type { Expected } from "./expected.ts";
import { LEAST_KNOWN, chooseMemory, chooseTime } from "./request.ts";

/** `mem: auto` and `time-request: auto`: what the tasks of a group should ask for, by what is known about their template. */

export interface MemoryOfNodes {
  /** The most that a task of a group can get. */
  most(spec: GroupSpec): number;
  /** What comes with its cores: its share of a node. */
  share(spec: GroupSpec): number;
}

/** What is known about the template of a group. */
export type Knowledge = Pick<Expected, "templateOf">;

/** A request is changed when it would be this much smaller or larger. */
const WORTH_IT = 1 / 8;

const isChange = (before: number, now: number): boolean => Math.abs(now - before) > before * WORTH_IT;

/** So many of a group at once are tried with more than twice what they were killed with. */
const AHEAD = 2;

/**
 * What a task is tried with next that needs more than all that are known: twice as much. But where others are tried with
 * that already, a few go ahead with four times, eight times as much and so on, so that what such tasks need is known
 * after one of them and not after all steps.
 */
const memoryBeyond = (run: Run, group: Group, above: number, most: number): number => {
  const steps: number[] = [];
  for (let mem = 2 * above; mem < most; mem *= 2) steps.push(mem);
  steps.push(most);
  const tried = steps.map(() => 0);
  for (const [row, { mem }] of group.memory) {
    const at = steps.findIndex((step) => mem <= step);
    if (mem > above && at >= 0 && !isFinalTask(stateOf(run.table, row))) tried[at]! += 1;
  }
  const ahead = tried.findIndex((count, i) => i > 0 && count < AHEAD);
  return steps[tried[0] === 0 || ahead < 0 ? 0 : ahead]!;
};

/** What a task is tried with next that was killed for memory: what others like it needed. */
export const learnedMemory =
  (known: Knowledge, nodes: MemoryOfNodes): NonNullable<MemoryAdvice["learned"]> =>
  (run, group, { above, attempts, most }) => {
    const peaks = known.templateOf(run, group)?.peaks?.values() ?? [];
    const found = chooseMemory({ peaks, above, attempts, most, free: nodes.share(group.spec) });
    if (found !== undefined) return found.request;
    // the last try gets the largest there is
    return attempts > 1 && above > 0 && above < most ? memoryBeyond(run, group, above, most) : undefined;
  };

/** Bytes that the tasks of a group that have not begun ask for. */
export const waitingMemory = (group: Group): number => amountOf(waitingShapeOf(group).resources, "mem");

const memoryFor = (
  known: Knowledge,
  nodes: MemoryOfNodes,
  run: Run,
  group: Group,
  killed: number,
): number | undefined => {
  const { auto, memRetry = 0 } = group.spec;
  if (auto?.mem !== true) return undefined;
  const peaks = known.templateOf(run, group)?.peaks;
  const most = nodes.most(group.spec);
  const before = waitingMemory(group);
  // while little is known: if more were killed with this than ended well, the others need not all be killed too
  if (peaks === undefined || peaks.count < LEAST_KNOWN)
    return killed > group.done && before < most ? Math.min(2 * before, most) : undefined;
  const free = Math.min(nodes.share(group.spec), most);
  const found = chooseMemory({ peaks: peaks.values(), above: 0, attempts: memRetry + 1, most, free });
  return found !== undefined && isChange(before, found.request) ? found.request : undefined;
};

const timeFor = (known: Knowledge, run: Run, group: Group): number | undefined => {
  const took = group.spec.auto?.timeRequest === true ? known.templateOf(run, group)?.took : undefined;
  if (took === undefined || took.count < LEAST_KNOWN) return undefined;
  const seconds = chooseTime(took.values());
  return isChange(waitingShapeOf(group).timeRequest, seconds) ? seconds : undefined;
};

/**
 * What the tasks of a group that have not begun should ask for from now on; undefined if nothing changes. `killed`:
 * how many were killed for memory with as much as those ask for now.
 */
export const learnedRequests = (
  known: Knowledge,
  nodes: MemoryOfNodes,
  run: Run,
  group: Group,
  killed: number,
): Pick<RunRequests, "run" | "group" | "mem" | "timeRequest"> | undefined => {
  const mem = memoryFor(known, nodes, run, group, killed);
  const timeRequest = timeFor(known, run, group);
  if (mem === undefined && timeRequest === undefined) return undefined;
  return {
    run: run.id,
    group: group.index,
    ...(mem === undefined ? {} : { mem }),
    ...(timeRequest === undefined ? {} : { timeRequest }),
  };
};

/** How many tasks of a group end between two looks at what was learned. */
export const LOOK_EVERY = 10;
