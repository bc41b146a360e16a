import type { RunTemplate } from "../templates.ts";
import { createLoneSpawners } from "./lone.ts";
import { type Spawner, type SpawnerListener, type SpawnerOptions, startSpawner } from "./spawner.ts";
import type { RunId } from "../../core/ids.ts";

/**
 * The spawners of one agent: some that tasks share, where each task goes to the least busy one; and a separate one for
 * every attempt that was lost with a spawner before.
 */

/** A spawner as its tasks see it. */
export interface Seat {
  readonly spawner: Spawner;
  /** It serves one attempt. */
  readonly alone: boolean;
  /** Tasks that have not ended there. */
  live: number;
  /** Runs whose environment it has. */
  readonly runs: Set<number>;
}

export interface CrewListener extends Pick<SpawnerListener, "started" | "output" | "exit"> {
  /** A shared spawner is gone: nothing new should come here. Called before `lost`. */
  broken(reason: string): void;
  /** What ran there ended with it. */
  lost(spawner: Spawner, reason: string): void;
}

export interface CrewOptions extends SpawnerOptions {
  /** How many spawners tasks share. */
  readonly shared: number;
  /** Variables of the node; those of a run override them. */
  readonly environment: Readonly<Record<string, string>>;
  /** A spawner has started; it gets tasks when this has settled. */
  readonly onSpawner: (spawner: Spawner) => Promise<void>;
  /** Null while output can be taken; else resolves when it can be taken again. */
  readonly drained: () => Promise<void> | null;
}

export interface SpawnerCrew {
  readonly kind: Spawner["kind"];
  /**
   * A seat for one more task of a run. An attempt that must be alone is named, and gets a separate spawner; otherwise
   * `behind` if given, since a chain stays with one spawner, which knows when a member has ended; otherwise the least
   * busy.
   */
  take(run: RunTemplate, alone: string | undefined, behind: Seat | undefined): Seat;
  forgetRun(run: RunId): void;
  close(): Promise<void>;
}

/** For spawners that run in Node: each is a process of tens of megabytes. */
const MOST_IN_NODE = 4;

/** For spawners with one task each. */
const MOST_ALONE = 16;

/** A task has ended there. A spawner that served one attempt closes with the last of its tasks. */
export const leaveSeat = (seat: Seat): void => {
  seat.live -= 1;
  if (seat.alone && seat.live === 0) void seat.spawner.close();
};

const newSeat = (spawner: Spawner, alone: boolean): Seat => ({ spawner, alone, live: 0, runs: new Set() });

export const startCrew = async (options: CrewOptions, listener: CrewListener): Promise<SpawnerCrew> => {
  const seatsApart = new WeakMap<Spawner, Seat>();
  /** All processes, in groups that change. */
  const groups: Iterable<Spawner>[] = [];
  let closing = false;
  let slowed = false;

  /** Tasks that write faster than the disk are blocked in their writes; nothing piles up here. */
  const slowDown = (): void => {
    const drained = slowed ? null : options.drained();
    if (drained === null) return;
    slowed = true;
    for (const group of groups) for (const spawner of group) spawner.pause();
    void drained.then(() => {
      slowed = false;
      for (const group of groups) for (const spawner of group) spawner.resume();
    });
  };

  const launch = async (closed: (reason: string) => void): Promise<Spawner> => {
    const spawner = await startSpawner(options, {
      started: listener.started,
      output: (id, fd, chunk) => {
        listener.output(id, fd, chunk);
        slowDown();
      },
      exit: listener.exit,
      closed,
    });
    await options.onSpawner(spawner);
    return spawner;
  };

  const launchShared = async (): Promise<Spawner> => {
    let spawner: Spawner | undefined;
    spawner = await launch((reason) => {
      if (closing) return;
      listener.broken(reason);
      if (spawner !== undefined) listener.lost(spawner, reason);
    });
    return spawner;
  };

  const first = await launchShared();
  const most = first.kind === "node" ? MOST_IN_NODE : Infinity;
  const others = Array.from({ length: Math.min(options.shared, most) - 1 }, launchShared);
  const shared = [first, ...(await Promise.all(others))];
  const lone = createLoneSpawners({
    kind: first.kind,
    most: Math.min(MOST_ALONE, most),
    start: launch,
    exit: listener.exit,
    lost: (spawner, reason) => {
      if (!closing) listener.lost(spawner, reason);
    },
  });
  groups.push(shared, lone);
  const seats = shared.map((spawner) => newSeat(spawner, false));

  const seatApart = (attempt: string): Seat => {
    const spawner = lone.of(attempt);
    let seat = seatsApart.get(spawner);
    if (seat === undefined) seatsApart.set(spawner, (seat = newSeat(spawner, true)));
    return seat;
  };

  const leastBusy = (): Seat => {
    let best = seats[0]!;
    for (const seat of seats) if (seat.live < best.live) best = seat;
    return best;
  };

  const introduce = (run: RunTemplate, { spawner, runs }: Seat): void => {
    if (runs.has(run.id)) return;
    runs.add(run.id);
    const entries = Object.entries({ ...run.env, ...options.environment });
    spawner.defineEnv(
      run.id,
      entries.map(([name, value]) => `${name}=${value}`),
    );
  };

  return {
    kind: first.kind,
    take: (run, alone, behind) => {
      const seat = alone === undefined ? (behind ?? leastBusy()) : seatApart(alone);
      seat.live += 1;
      introduce(run, seat);
      return seat;
    },
    forgetRun: (run) => {
      // spawners that serve one attempt do not outlive its run
      for (const { spawner, runs } of seats) if (runs.delete(run)) spawner.dropEnv(run);
    },
    close: async () => {
      closing = true;
      await Promise.all([lone, ...shared].map((each) => each.close()));
    },
  };
};
