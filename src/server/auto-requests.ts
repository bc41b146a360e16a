import { type Group, type Run, groupOf, isFinishedRun, waitingShapeOf } from "../core/run.ts";
import { amountOf } from "../core/resources.ts";
import type { MemoryAdvice } from "../core/memory-retry.ts";
import type { GroupSpec } from "../core/spec.ts";
import type { Expected } from "../learned/expected.ts";
import { LEAST_KNOWN, chooseMemory, chooseTime } from "../learned/request.ts";
import type { Engine } from "./engine.ts";
import type { Row } from "../core/ids.ts";

/**
 * `mem: auto` and `time-request: auto`: what tasks ask for follows what was learned about their template. A change is
 * journaled before any task is placed with it.
 */
export interface AutoRequests {
  /** A run came in, or came back. */
  begin(run: Run): void;
  /** Call this after the end of a task has been learned. */
  taskEnded(run: Run, row: Row): void;
}

export interface MemoryOfNodes {
  /** The most that a task of a group can get. */
  most(spec: GroupSpec): number;
  /** What comes with its cores: its share of a node. */
  share(spec: GroupSpec): number;
}

/** How many tasks end between two looks at what was learned. */
const LOOK_EVERY = 10;
/** A request is changed when it would be this much smaller or larger. */
const WORTH_IT = 1 / 8;

const attemptsOf = ({ memRetry = 0 }: GroupSpec): number => memRetry + 1;

/** What a task is tried with next that was killed for memory: what others like it needed. */
export const learnedMemory =
  (expected: Expected, nodes: MemoryOfNodes): NonNullable<MemoryAdvice["learned"]> =>
  (run, group, { above, attempts, most }) => {
    const peaks = expected.templateOf(run, group)?.peaks;
    if (peaks === undefined) return undefined;
    return chooseMemory({ peaks: peaks.values(), above, attempts, most, free: nodes.share(group.spec) })?.request;
  };

const isChange = (before: number, now: number): boolean => Math.abs(now - before) > before * WORTH_IT;

export const createAutoRequests = (engine: Engine, expected: Expected, nodes: MemoryOfNodes): AutoRequests => {
  /** Tasks that ended since the last look, by run and group. */
  const ended = new WeakMap<Group, number>();

  const memoryFor = (run: Run, group: Group): number | undefined => {
    const peaks = expected.templateOf(run, group)?.peaks;
    if (group.spec.auto?.mem !== true || peaks === undefined || peaks.count < LEAST_KNOWN) return undefined;
    const most = nodes.most(group.spec);
    const free = Math.min(nodes.share(group.spec), most);
    const found = chooseMemory({ peaks: peaks.values(), above: 0, attempts: attemptsOf(group.spec), most, free });
    const before = amountOf(waitingShapeOf(group).resources, "mem");
    return found !== undefined && isChange(before, found.request) ? found.request : undefined;
  };

  const timeFor = (run: Run, group: Group): number | undefined => {
    const took = expected.templateOf(run, group)?.took;
    if (group.spec.auto?.timeRequest !== true || took === undefined || took.count < LEAST_KNOWN) return undefined;
    const seconds = chooseTime(took.values());
    return isChange(waitingShapeOf(group).timeRequest, seconds) ? seconds : undefined;
  };

  const look = (run: Run, group: Group): void => {
    if (isFinishedRun(run) || group.done + group.failed + group.canceled === group.count) return;
    const mem = memoryFor(run, group);
    const timeRequest = timeFor(run, group);
    if (mem === undefined && timeRequest === undefined) return;
    engine.commit({
      type: "run.requests",
      at: engine.clock(),
      run: run.id,
      group: group.index,
      ...(mem === undefined ? {} : { mem }),
      ...(timeRequest === undefined ? {} : { timeRequest }),
    });
  };

  return {
    begin: (run) => {
      for (const group of run.groups) if (group.spec.auto !== undefined) look(run, group);
    },
    taskEnded: (run, row) => {
      const group = groupOf(run.groups, row);
      if (group.spec.auto === undefined) return;
      const count = (ended.get(group) ?? 0) + 1;
      ended.set(group, count % LOOK_EVERY);
      // not now: the event that ended the task is still being applied
      if (count === LOOK_EVERY) setImmediate(() => engine.state.runs.get(run.id) === run && look(run, group));
    },
  };
};
