import { Ending } from "../core/events.ts";
import type { Assign, AttemptName, Singles } from "../protocol/messages.ts";
import type { AssignedTasks } from "./assigned-tasks.ts";
import { endedWell } from "./followers.ts";
import type { Executor } from "./executor.ts";
import type { NodeClock } from "./node-clock.ts";
import type { Result } from "./results.ts";
import type { SlotLine, SlotTaker } from "./slot-line.ts";
import type { Slot } from "./slots.ts";
import type { AgentTask, TaskOwner } from "./task.ts";
import { type TasksHereOptions, createTasksHere } from "./tasks-here.ts";
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
  takeSingles(message: Singles, run: RunTemplate): void;
  /** Gives back up to this many tasks that wait for a slot, the last first; by default all that have not begun. */
  giveBack(count?: number): void;
  /** Ends an attempt; if it has not begun, returns it and what lies behind it, to be given back unless superseded. */
  stop(run: RunId, row: Row, attempt: number, superseded: boolean): readonly AgentTask[];
  endRunning(ending: number, reason: string): void;
  attempts(): Iterable<AttemptName>;
}

export interface AssignmentsOptions extends TasksHereOptions {
  /** Answers every task at once, without starting it. */
  readonly nullOnly: boolean;
  readonly made: AssignedTasks;
  readonly line: SlotLine;
  readonly executor: Executor;
  readonly clock: NodeClock;
}

/** Null tasks answered before the loop gets a turn for its sockets. */
const PER_TURN = 4000;

const isNull = ({ run, group }: AgentTask): boolean => run.groups.get(group)!.source.executor === "null";

const isPatient = ({ run, group }: AgentTask): boolean => run.groups.get(group)!.source.patient === true;

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
  const { pool, line, executor, results, pace, clock, departure } = options;
  const here = createTasksHere(options);
  const { queue, held, running, chains, followers, place, conclude, giveBack, release } = here;

  const owner: TaskOwner = {
    ended: (task, result) => {
      const freed = conclude(task);
      chains.learn(task, result);
      if (!task.dropped) results.add(result);
      const well = endedWell(task, result);
      const next = release(task, well);
      const begun = line.serve();
      // its result can wait a moment with others, if nobody waits for it but what has begun here
      const gathers = begun > 0 && next?.only === true && next.follower !== undefined;
      pace.due(!gathers && (queue.size === 0 || (freed && begun === 0)), well && isPatient(task));
    },
    dropped: (task) => {
      const behind = followers.detach(task);
      const tasks = task.dropped ? behind : [task, ...behind];
      conclude(task);
      if (tasks.length > 0) giveBack(tasks);
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
        held.delete(task.run.id, task.row);
        const result = nullResult(task, clock.now());
        results.add(result);
        release(task, endedWell(task, result));
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
    // many at once take the server as long as us: it begins with them while we go on
    if (nulls > 0) pace.due(queue.size === 0 || nulls >= PER_TURN);
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
      const isHeld = (row: Row): boolean => held.get(message.run, row) !== undefined;
      for (const task of options.made.of(message, run, owner, isHeld)) place(task, message.behind);
    },

    takeSingles: (message, run) => {
      const isHeld = (row: Row): boolean => held.get(message.run, row) !== undefined;
      for (const [task, behind] of options.made.singles(message, run, owner, isHeld)) place(task, behind);
    },

    giveBack: (count) => {
      const tasks = queue.takeBack(count ?? queue.size).flatMap((task) => [task, ...followers.detach(task)]);
      // those behind what runs stay, unless everything goes
      if (count === undefined) for (const task of running) tasks.push(...followers.detach(task));
      giveBack(tasks);
    },

    stop: (run, row, attempt, superseded) => {
      const task = held.get(run, row);
      if (task === undefined || task.attempt !== attempt) return [];
      if (superseded) {
        // its successor may arrive at this very agent before it has ended
        task.dropped = true;
        here.forget(task);
      }
      const lies = followers.leave(task);
      if (!lies && !queue.remove(task)) {
        executor.end(task, Ending.CANCELED, "cancelled");
        return [];
      }
      const tasks = [task, ...followers.detach(task)];
      for (const each of tasks) conclude(each);
      return tasks;
    },

    endRunning: (ending, reason) => {
      for (const task of running) executor.end(task, ending, reason);
    },

    *attempts() {
      for (const { run, row, attempt } of held.values()) yield { run: run.id, row, attempt };
    },
  };
};
