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
const CHAIN_MS = 10;
const LONGEST_CHAIN = 8;
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
  const chains = new Set<Chain>();
  /** Recent execution time by group, and by run for groups that have none yet. */
  const meanMs = new WeakMap<object, number>();

  /** How many short tasks may wait in a slot behind the one that runs there. */
  const lengthFor = (task: AgentTask): number => {
    const mean = meanMs.get(task.run.groups.get(task.group)!) ?? meanMs.get(task.run);
    return mean === undefined ? 0 : Math.min(LONGEST_CHAIN, Math.floor(CHAIN_MS / Math.max(mean, 0.1)));
  };

  return {
    open: (task, slot) => {
      const chain: Chain = { slot, shape: task.shape, members: [task] };
      chains.add(chain);
      task.chain = chain;
    },

    leave: (task) => {
      const { chain } = task;
      if (chain === undefined) return false;
      task.chain = undefined;
      chain.members.splice(chain.members.indexOf(task), 1);
      if (chain.members.length > 0) return false;
      pool.release(chain.slot);
      chains.delete(chain);
      return true;
    },

    learn: (task, result) => {
      if (result.ending !== Ending.EXIT) return;
      const took = result.finished - result.started;
      for (const key of [task.run.groups.get(task.group)!, task.run])
        meanMs.set(key, (1 - NEWEST) * (meanMs.get(key) ?? took) + NEWEST * took);
    },

    extend: (queue, begin) => {
      for (const chain of chains) {
        // nobody waits behind a task that may take long, or that may take its spawner down with it
        const running = chain.members[0]!;
        if (running.alone || lengthFor(running) === 0) continue;
        let filling = false;
        for (;;) {
          const task = queue.first();
          if (task === undefined) return;
          const most = task.alone ? 0 : lengthFor(task);
          const enough = chain.members.length > most;
          // refilled when half of it is gone, so that one message carries several
          if (task.shape !== chain.shape || enough || (!filling && chain.members.length > most / 2)) break;
          filling = true;
          queue.remove(task.id);
          const after = chain.members.at(-1);
          chain.members.push(task);
          task.chain = chain;
          begin(task, after);
        }
      }
    },
  };
};
