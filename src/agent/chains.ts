import { Ending } from "../core/events.ts";
import type { LocalQueue } from "./local-queue.ts";
import type { Result } from "./results.ts";
import type { Slot, SlotPool } from "./slots.ts";
import type { AgentTask, Chain } from "./task.ts";

/**
 * Tasks in their slots. Short ones are handed to the spawner ahead of time, behind running ones of the same shape, so
 * that a slot never waits for a message between two of them.
 */

/** Tasks that wait in a slot behind the running one: together no longer than this, and no more than that many. */
const CHAIN_MS = 20;
const LONGEST_CHAIN = 32;
/** Weight of the newest execution time. */
const NEWEST = 0.2;

export interface Chains {
  /** A task begins a slot of its own. */
  open(task: AgentTask, slot: Slot): void;
  /** A task has left its slot; returns whether the slot is free now. */
  leave(task: AgentTask): boolean;
  /** How long a task took; the estimate for the next ones. */
  learn(task: AgentTask, result: Result): void;
  /** Takes tasks that may wait behind others out of the queue, in the queue's own order, and begins them. */
  extend(queue: LocalQueue<AgentTask>, begin: (task: AgentTask, after: AgentTask | undefined) => void): void;
}

export const createChains = (pool: SlotPool): Chains => {
  /** Chains that may take more: a member has left since they were last looked at, or the queue had nothing for them. */
  const hungry = new Set<Chain>();
  /** Recent execution time by group, and by run for groups that have none yet. */
  const meanMs = new WeakMap<object, number>();

  const remember = (of: object, took: number): void =>
    void meanMs.set(of, (1 - NEWEST) * (meanMs.get(of) ?? took) + NEWEST * took);

  /** How many short tasks may wait in a slot behind the one that runs there; undefined while nobody knows. */
  const lengthFor = (task: AgentTask): number | undefined => {
    const mean = meanMs.get(task.run.groups.get(task.group)!) ?? meanMs.get(task.run);
    return mean === undefined ? undefined : Math.min(LONGEST_CHAIN, Math.floor(CHAIN_MS / Math.max(mean, 0.1)));
  };

  return {
    open: (task, slot) => {
      const chain: Chain = { slot, shape: task.shape, members: [task] };
      hungry.add(chain);
      task.chain = chain;
    },

    leave: (task) => {
      const { chain } = task;
      if (chain === undefined) return false;
      task.chain = undefined;
      if (chain.members[0] === task) chain.members.shift();
      else chain.members.splice(chain.members.indexOf(task), 1);
      if (chain.members.length > 0) {
        hungry.add(chain);
        return false;
      }
      pool.release(chain.slot);
      hungry.delete(chain);
      return true;
    },

    learn: (task, result) => {
      if (result.ending !== Ending.EXIT) return;
      const took = result.finished - result.started;
      remember(task.run.groups.get(task.group)!, took);
      remember(task.run, took);
    },

    extend: (queue, begin) => {
      for (const chain of hungry) {
        // nobody waits behind a task that may take long, or that may take its spawner down with it
        const running = chain.members[0]!;
        const length = running.alone ? 0 : lengthFor(running);
        if (length === 0) hungry.delete(chain);
        let filling = false;
        while ((length ?? 0) > 0) {
          const task = queue.first();
          if (task === undefined) return;
          if (task.shape !== chain.shape) break;
          const most = task.alone ? 0 : (lengthFor(task) ?? 0);
          // refilled when half of it is gone, so that one message carries several
          if (chain.members.length > most || (!filling && chain.members.length > most / 2)) {
            // nothing changes for it before another member leaves, unless another task is at the head by then
            if (!task.alone && most > 0) hungry.delete(chain);
            break;
          }
          filling = true;
          queue.remove(task);
          const after = chain.members.at(-1);
          chain.members.push(task);
          task.chain = chain;
          begin(task, after);
        }
      }
    },
  };
};
