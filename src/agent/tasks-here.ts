import type { AgentMessage, Behind } from "../protocol/messages.ts";
import { type ByRow, createByRow } from "./by-row.ts";
import { type Chains, createChains } from "./chains.ts";
import type { Departure } from "./departure.ts";
import { type Followers, createFollowers } from "./followers.ts";
import { type LocalQueue, createLocalQueue } from "./local-queue.ts";
import type { ResultPace } from "./result-pace.ts";
import type { ResultStore } from "./results.ts";
import type { SlotPool } from "./slots.ts";
import { type AgentTask, toRanges } from "./task.ts";

export interface TasksHereOptions {
  readonly pool: SlotPool;
  readonly results: ResultStore;
  readonly pace: ResultPace;
  readonly departure: Departure;
  readonly send: (message: AgentMessage) => void;
}

/** The attempts of this agent, and where each of them is: in the queue, behind another, or with a spawner. */
export interface TasksHere {
  readonly held: ByRow<AgentTask>;
  readonly queue: LocalQueue<AgentTask>;
  readonly followers: Followers;
  /** Those that were handed to a spawner, and their slots. */
  readonly running: Set<AgentTask>;
  readonly chains: Chains;
  /** Takes a task that has come: into the queue, or behind the one it was handed ahead for. */
  place(task: AgentTask, behind: Behind | undefined): void;
  /** Leaves alone another attempt of the same task that has arrived since. */
  forget(task: AgentTask): void;
  /** Returns whether that frees a slot. */
  conclude(task: AgentTask): boolean;
  /** Tasks that have not begun. */
  giveBack(tasks: readonly AgentTask[]): void;
  /** What lay behind a task that has ended: it begins if that one ended well, and else goes back, after its result. */
  release(task: AgentTask, well: boolean): AgentTask | undefined;
}

export const createTasksHere = ({ pool, results, pace, departure, send }: TasksHereOptions): TasksHere => {
  const queue = createLocalQueue<AgentTask>();
  const held = createByRow<AgentTask>();
  const running = new Set<AgentTask>();
  const chains = createChains(pool);
  const followers = createFollowers(results);

  const forget = (task: AgentTask): void => {
    const { run, row } = task;
    if (held.get(run.id, row) === task) held.delete(run.id, row);
  };

  const conclude = (task: AgentTask): boolean => {
    forget(task);
    running.delete(task);
    return chains.leave(task);
  };

  const giveBack = (tasks: readonly AgentTask[]): void => {
    for (const task of tasks) conclude(task);
    send({ t: "returned", parts: toRanges(tasks) });
    departure.check();
  };

  const place = (task: AgentTask, behind: Behind | undefined): void => {
    const { id } = task.run;
    held.set(id, task.row, task);
    const where = behind === undefined ? "begins" : followers.place(task, held.get(id, behind.row), behind);
    if (where === "begins") queue.push(task);
    else if (where === "nowhere") giveBack([task]);
  };

  const release = (task: AgentTask, well: boolean): AgentTask | undefined => {
    if (well) {
      const next = followers.next(task);
      if (next !== undefined) queue.push(next);
      return next;
    }
    const behind = followers.detach(task);
    if (behind.length === 0) return undefined;
    pace.flush();
    giveBack(behind);
    return undefined;
  };

  return { queue, held, running, chains, followers, place, forget, conclude, giveBack, release };
};
