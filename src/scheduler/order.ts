import type { Group, Run } from "../core/run.ts";

/** Which of two groups of equal priority goes first. The seam for other orders: bench/ has those of peers. */

export interface Rank {
  /** When its tasks should begin, in server milliseconds: the earliest goes first. */
  readonly start: number;
  /** Of equal starts the one with the highest pressure goes first, and of equal pressures the one that came first. */
  readonly pressure: number;
}

export interface GroupOfRun {
  readonly run: Run;
  readonly group: Group;
}

export interface Order {
  rankOf(run: Run, group: Group): Rank;
  /** The tasks of a group are expected to take another time, or will not run. */
  changed(run: Run, group: Group): void;
  forget(run: Run): void;
  /** The cpus of all agents, in integer units, have become more or fewer. */
  resized(by: number): void;
  /**
   * Brings ranks up to date and tells whose may have changed. `ended` tasks have ended since the last call: work for this
   * is in proportion to them.
   */
  renew(ended: number): readonly GroupOfRun[];
}

/** In order of arrival. */
export const FIRST_COME: Order = {
  rankOf: () => ({ start: 0, pressure: 0 }),
  changed: () => undefined,
  forget: () => undefined,
  resized: () => undefined,
  renew: () => [],
};
