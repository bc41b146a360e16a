import { Ending } from "../core/events.ts";
import type { AgentMessage, Assign, AttemptName } from "../protocol/messages.ts";
import type { AssignedTasks } from "./assigned-tasks.ts";
import { createChains } from "./chains.ts";
import type { Departure } from "./departure.ts";
import type { Executor } from "./executor.ts";
import { createLocalQueue } from "./local-queue.ts";
import type { NodeClock } from "./node-clock.ts";
import type { ResultPace } from "./result-pace.ts";
import type { Result, ResultStore } from "./results.ts";
import type { SlotLine, SlotTaker } from "./slot-line.ts";
import type { Slot, SlotPool } from "./slots.ts";
import { type AgentTask, taskKey, type TaskOwner, toRanges } from "./task.ts";
import type { RunTemplate } from "./templates.ts";
import type { Row, RunId } from "../core/ids.ts";

/**
 * The tasks that this agent runs alone: each waits in the queue, runs in a slot and ends with a result, unless it is
 * given back before it begins.
 */
export interface Assignments extends SlotTaker {
  /** Attempts that have not ended. */
  readonly size: number;
  /** Those that were handed to a spawner. */
  readonly running: ReadonlySet<AgentTask>;
  take(message: Assign, run: RunTemplate): void;
  /** Gives back up to this many tasks that have not begun, the last first; all of them by default. */
  giveBack(count?: number): void;
  /** Ends an attempt; returns it if it has not begun and must be given back. */
  stop(run: RunId, row: Row, attempt: number, superseded: boolean): AgentTask | undefined;
  endRunning(ending: number, reason: string): void;
  attempts(): Iterable<AttemptName>;
}

export interface AssignmentsOptions {
  /** Answers every task at once, without starting it. */
  readonly nullOnly: boolean;
  readonly made: AssignedTasks;
  readonly pool: SlotPool;
  readonly line: SlotLine;
  readonly executor: Executor;
  readonly results: ResultStore;
  readonly pace: ResultPace;
  readonly clock: NodeClock;
  readonly departure: Departure;
  readonly send: (message: AgentMessage) => void;
}

/** Null tasks answered before the loop gets a turn for its sockets. */
const PER_TURN = 4000;

const isNull = ({ run, group }: AgentTask): boolean => run.groups.get(group)!.source.executor === "null";

const nullResult = (task: AgentTask, now: number): Result => ({
  run: task.run.id,
  row: task.row,
  attempt: task.attempt,
  ending: Ending.EXIT,
  code: 0,
  started: now,
  finished: now,
  outAt: -1,
  outBytes: 0,
  errBytes: 0,
});

export const createAssignments = (options: AssignmentsOptions): Assignments => {
  const { pool, line, executor, results, pace, clock, departure, send } = options;
  const queue = createLocalQueue<AgentTask>();
  const held = new Map<number, AgentTask>();
  const running = new Set<AgentTask>();
  const chains = createChains(pool);

  /** Leaves alone another attempt of the same task that has arrived since. */
  const forget = (task: AgentTask): void => {
    const key = taskKey(task.run.id, task.row);
    if (held.get(key) === task) held.delete(key);
  };

  /** Returns whether that frees a slot. */
  const conclude = (task: AgentTask): boolean => {
    forget(task);
    running.delete(task);
    return chains.leave(task);
  };

  const owner: TaskOwner = {
    ended: (task, result) => {
      const freed = conclude(task);
      chains.learn(task, result);
      if (!task.dropped) results.add(result);
      const begun = line.serve();
      pace.due(queue.size === 0 || (freed && begun === 0));
    },
    dropped: (task) => {
      conclude(task);
      if (!task.dropped) send({ t: "returned", parts: toRanges([task]) });
      departure.check();
      line.serve();
    },
  };

  const allocate = (task: AgentTask): Slot | undefined => pool.allocate(task.resources);

  const begin = (task: AgentTask, after: AgentTask | undefined): void => {
    running.add(task);
    executor.start(task, after);
  };

  const serve = (): number => {
    let nulls = 0;
    let begun = 0;
    for (;;) {
      const next = queue.next(allocate);
      if (next === undefined) break;
      const { task, slot } = next;
      begun += 1;
      if (options.nullOnly || isNull(task)) {
        pool.release(slot);
        held.delete(taskKey(task.run.id, task.row));
        results.add(nullResult(task, clock.now()));
        nulls += 1;
        if (nulls >= PER_TURN) {
          setImmediate(line.serve);
          break;
        }
      } else {
        chains.open(task, slot);
        begin(task, undefined);
      }
    }
    // the Node spawner looks for strays of many tasks at once: waiting for each in turn would cost more than it saves
    if (executor.kind === "native") chains.extend(queue, begin);
    if (nulls > 0) pace.due(queue.size === 0);
    return begun;
  };

  return {
    get size() {
      return held.size;
    },
    running,
    // it takes what fits; what does not fit blocks nobody
    waiting: false,
    serve,

    take: (message, run) => {
      const isHeld = (row: Row): boolean => held.has(taskKey(message.run, row));
      for (const task of options.made.of(message, run, owner, isHeld)) {
        held.set(taskKey(message.run, task.row), task);
        queue.push(task);
      }
    },

    giveBack: (count = queue.size) => {
      const tasks = queue.takeBack(count);
      for (const task of tasks) conclude(task);
      send({ t: "returned", parts: toRanges(tasks) });
      departure.check();
    },

    stop: (run, row, attempt, superseded) => {
      const task = held.get(taskKey(run, row));
      if (task === undefined || task.attempt !== attempt) return undefined;
      if (superseded) {
        // its successor may arrive at this very agent before it has ended
        task.dropped = true;
        forget(task);
      }
      if (queue.remove(task.id) === undefined) {
        executor.end(task, Ending.CANCELED, "cancelled");
        return undefined;
      }
      conclude(task);
      return superseded ? undefined : task;
    },

    endRunning: (ending, reason) => {
      for (const task of running) executor.end(task, ending, reason);
    },

    *attempts() {
      for (const { run, row, attempt } of held.values()) yield { run: run.id, row, attempt };
    },
  };
};
