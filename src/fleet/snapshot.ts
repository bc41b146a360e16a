/**
 * What a strategy sees of a fleet, and what it may decide. Work is measured in pilots: if one pilot runs k tasks of a
 * shape at once, each counts 1/k, so that any mixture of shapes adds up and Parsl's formulas (slots against tasks) keep
 * their meaning with both sides divided by k.
 */

/** The part of clusters.yaml's `fleet` that decisions need; times in seconds. */
export interface FleetPolicy {
  readonly strategy: "auto" | "adaptive" | "simple" | "none";
  readonly init: number;
  readonly min: number;
  readonly max: number;
  readonly parallelism: number;
  readonly idle: number;
  readonly errorHandler: "pause" | "simple" | "windowed";
  readonly window: number;
  readonly whenGone: "wait" | "fail";
  readonly targetDuration: number;
  readonly waitCount: number;
}

/** A pilot that takes tasks, or will when it has started: neither draining nor about to end. */
export interface Supply {
  readonly id: number;
  /** None of its agents is there yet. */
  readonly pending: boolean;
  /** The share of its slots that tasks have, including those that wait there: it may exceed 1. */
  readonly used: number;
  /** Seconds until all its work is done when spread over all its slots. */
  readonly occupancy: number;
  /** Seconds without any task; 0 while it has one. */
  readonly idleSeconds: number;
  /** Seconds that a task placed now could run there; Infinity without a walltime. */
  readonly remaining: number;
}

/** Waiting tasks of one shape that a pilot of this fleet can run. */
export interface Demand {
  readonly waiting: number;
  /** How many of them one pilot runs at once; at least 1. */
  readonly slots: number;
  /** Seconds that a pilot must have left for them. */
  readonly timeRequest: number;
  /** Seconds that one of them is expected to take. */
  readonly expected: number;
  /** Cores that one of them asks for, with all its ranks: for people. */
  readonly cores?: number;
}

export interface FleetSnapshot {
  readonly policy: FleetPolicy;
  /** A server's first look at the fleet: `init` applies. */
  readonly first: boolean;
  readonly pilots: readonly Supply[];
  readonly demand: readonly Demand[];
  /** Whether we know what a node offers. */
  readonly known: boolean;
  /** Seconds since something last waited or ran here. */
  readonly idleSeconds: number;
  /** By pilot: how many times in a row `adaptive` found it superfluous. */
  readonly suggested: ReadonlyMap<number, number>;
  readonly starts: Starts;
  readonly stopping: boolean;
}

/** How starting pilots went since the waiting tasks were last given up. */
export interface Starts {
  /** Pilots ever requested, including those under way; and how many of them ended without an agent ever connecting. */
  readonly total: number;
  readonly failed: number;
  /** How many of the latest ones failed without a success in between. */
  readonly inARow: number;
  /** Seconds since the last failure. */
  readonly sinceLast: number;
}

/** What a strategy wants. */
export interface Scaling {
  readonly start: number;
  /** Pilots to let go: pending ones are cancelled, others drained. */
  readonly stop: readonly number[];
  readonly suggested?: ReadonlyMap<number, number>;
}

export type Strategy = (fleet: FleetSnapshot) => Scaling;

export const NOTHING: Scaling = { start: 0, stop: [] };

/** Rounding errors in sums of fractions must not ask for one more. */
const EPSILON = 1e-9;

export const roundUp = (value: number): number => Math.ceil(value - EPSILON);
export const roundDown = (value: number): number => Math.floor(value + EPSILON);

/** Tasks that need at least this long, and the pilots that still have the time. */
export interface Horizon {
  readonly pilots: readonly Supply[];
  /** Waiting and placed work, in pilots. */
  readonly load: number;
  readonly waiting: number;
  /** Seconds of work, in pilots. */
  readonly seconds: number;
}

/**
 * The whole fleet first, then for every time-request that waits: the tasks that need as much or more against the pilots
 * that have as much or more left. A shortage at any horizon is a shortage.
 */
export const horizons = (fleet: FleetSnapshot): Horizon[] => {
  const times = new Set([0, ...fleet.demand.map(({ timeRequest }) => timeRequest)]);
  return [...times]
    .toSorted((a, b) => a - b)
    .map((least) => {
      const pilots = fleet.pilots.filter(({ remaining }) => remaining >= least);
      const demand = fleet.demand.filter(({ timeRequest }) => timeRequest >= least);
      return {
        pilots,
        load:
          demand.reduce((sum, { waiting, slots }) => sum + waiting / slots, 0) +
          pilots.reduce((sum, { used }) => sum + used, 0),
        waiting: demand.reduce((sum, { waiting }) => sum + waiting, 0),
        seconds:
          demand.reduce((sum, { waiting, slots, expected }) => sum + (waiting / slots) * expected, 0) +
          pilots.reduce((sum, { occupancy }) => sum + occupancy, 0),
      };
    });
};

/** The first to let go come first: pending ones, newest first; then the longest idle; then the least used. */
export const inOrderOfLeaving = (pilots: readonly Supply[]): Supply[] =>
  pilots.toSorted(
    (a, b) =>
      Number(b.pending) - Number(a.pending) ||
      (a.pending ? b.id - a.id : b.idleSeconds - a.idleSeconds || a.used - b.used || a.id - b.id),
  );
