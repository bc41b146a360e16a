import { Ending } from "../core/events.ts";
import type { Behind } from "../protocol/messages.ts";
import type { Result, ResultStore } from "./results.ts";
import { type AgentTask, taskKey } from "./task.ts";

/**
 * Tasks that were handed ahead: each lies behind the one it waits for, and joins the queue when that one has ended here
 * with exit code 0. The server may hand one ahead while the result of the other is still on its way: so those that
 * ended well are remembered until the server has their results.
 */
export interface Followers {
  /** Where a new task stands: behind another, in the queue because that one has ended well, or nowhere. */
  place(task: AgentTask, before: AgentTask | undefined, behind: Behind): "behind" | "begins" | "nowhere";
  /** The task that may begin because this one ended well; nothing lies behind this one any more. */
  next(task: AgentTask): AgentTask | undefined;
  /** Everything that lies behind a task, in order: it lies nowhere then. */
  detach(task: AgentTask): AgentTask[];
  /** Takes a task from behind another, with what lies behind itself; false if it lies behind none. */
  leave(task: AgentTask): boolean;
}

export const endedWell = (task: AgentTask, { ending, code }: Result): boolean =>
  ending === Ending.EXIT && code === 0 && !task.dropped;

interface Remembered {
  readonly attempt: number;
  /** The message that has its result has at most this number. */
  readonly seq: number;
}

export const createFollowers = (results: ResultStore): Followers => {
  const well = new Map<number, Remembered>();

  const remember = (task: AgentTask): void => {
    for (const [key, { seq }] of well) {
      if (seq > results.acked) break;
      well.delete(key);
    }
    const key = taskKey(task.run.id, task.row);
    well.delete(key);
    well.set(key, { attempt: task.attempt, seq: results.seq + 1 });
  };

  const leave = (task: AgentTask): boolean => {
    if (task.before === undefined) return false;
    task.before.follower = undefined;
    task.before = undefined;
    return true;
  };

  return {
    place: (task, before, behind) => {
      if (before?.attempt === behind.attempt && !before.dropped) {
        if (before.follower !== undefined) return "nowhere";
        before.follower = task;
        task.before = before;
        return "behind";
      }
      const known = well.get(taskKey(task.run.id, behind.row));
      return known?.attempt === behind.attempt ? "begins" : "nowhere";
    },
    next: (task) => {
      const { follower } = task;
      if (follower !== undefined) leave(follower);
      else if (task.followed) remember(task);
      return follower;
    },
    detach: (task) => {
      const all: AgentTask[] = [];
      for (let next = task.follower; next !== undefined; next = next.follower) all.push(next);
      for (const each of all) leave(each);
      return all;
    },
    leave,
  };
};
