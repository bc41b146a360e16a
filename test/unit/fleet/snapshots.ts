import type { Demand, FleetPolicy, FleetSnapshot, Supply } from "../../../src/fleet/snapshot.ts";

/** Fleets for the tables of strategies. */

export const policy = (change: Partial<FleetPolicy> = {}): FleetPolicy => ({
  strategy: "auto",
  init: 0,
  min: 0,
  max: 10,
  parallelism: 1,
  idle: 120,
  errorHandler: "pause",
  window: 3,
  whenGone: "wait",
  targetDuration: 600,
  waitCount: 3,
  ...change,
});

export const pilot = (id: number, change: Partial<Supply> = {}): Supply => ({
  id,
  pending: false,
  used: 0,
  occupancy: 0,
  idleSeconds: 0,
  remaining: Infinity,
  ...change,
});

export const pilots = (count: number, change: Partial<Supply> = {}): Supply[] =>
  Array.from({ length: count }, (_, i) => pilot(i + 1, change));

export const demand = (waiting: number, slots: number, change: Partial<Demand> = {}): Demand => ({
  waiting,
  slots,
  timeRequest: 0,
  expected: 60,
  ...change,
});

export const fleet = (change: Partial<FleetSnapshot> = {}): FleetSnapshot => ({
  policy: policy(),
  first: false,
  pilots: [],
  demand: [],
  known: true,
  idleSeconds: 0,
  suggested: new Map(),
  starts: { total: 0, failed: 0, inARow: 0, sinceLast: Infinity },
  stopping: false,
  ...change,
});
