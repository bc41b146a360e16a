import type { Shape } from "../core/run.ts";
import { type AgentLoad, add, createLoad, placedOf } from "./agent-load.ts";
import type { AgentPool } from "./agent-pool.ts";

/**
 * What tasks that run outside any agent of the pool take of the accounts: the job of a task on this machine, and the
 * licences of jobs elsewhere. It is reserved before the job is asked for, and free when the job has ended.
 */
export interface Reservations {
  /** False when there is no room now. What is shared by nobody there needs none. A second time it changes nothing. */
  reserve(key: string, place: ReservationPlace, shape: Shape): boolean;
  /** Found in the state after a restart: it runs, whether there is room or not. */
  restore(key: string, place: ReservationPlace, shape: Shape): void;
  release(key: string): void;
  /** Somebody who waits for room on this cluster's machine comes first: agents there begin nothing until it has it. */
  close(cluster: string, closed: boolean): void;
}

export interface ReservationPlace {
  readonly cluster: string;
  readonly queue: string;
  readonly host: string;
}

/** All ranks of it, as one task. */
const wholeOf = ({ ranks, ...shape }: Shape): Shape => {
  if (ranks === undefined) return { ...shape, ranks };
  const resources: Record<string, number> = {};
  for (const name in shape.resources) resources[name] = shape.resources[name]! * ranks.count;
  return { ...shape, resources, ranks: undefined };
};

/** `settled`: the pool, when all that has left is counted. */
export const createReservations = (settled: () => AgentPool): Reservations => {
  /** Each like an agent that has this one task and offers no more; the pool knows none of them. */
  const held = new Map<string, AgentLoad>();
  const take = (key: string, { cluster, queue, host }: ReservationPlace, shape: Shape, surely: boolean): boolean => {
    if (held.has(key)) return true;
    const { accounts } = settled();
    const whole = wholeOf(shape);
    const load = createLoad({ id: 0, cluster, queue, host, pilot: 0, resources: whole.resources, endsAt: Infinity });
    accounts.join(load);
    if (!surely && accounts.room(load, whole, true) < 1) {
      accounts.leave(load);
      return false;
    }
    const placed = placedOf(load, whole);
    add(load, placed, 1);
    accounts.counted(load, placed, 0);
    held.set(key, load);
    return true;
  };
  return {
    reserve: (key, place, shape) => take(key, place, shape, false),
    restore: (key, place, shape) => void take(key, place, shape, true),
    release: (key) => {
      const load = held.get(key);
      if (load === undefined) return;
      held.delete(key);
      const { accounts, lookAgain } = settled();
      for (const other of accounts.helped(load)) lookAgain(other);
      accounts.leave(load);
    },
    close: (cluster, closed) => {
      const { accounts, agents, lookAgain } = settled();
      accounts.close(cluster, closed);
      if (!closed) for (const agent of agents.values()) if (agent.offer.cluster === cluster) lookAgain(agent);
    },
  };
};
