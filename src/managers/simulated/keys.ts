import { z } from "zod";
import {
  planOf,
  readKeys,
  seconds,
  shapeOf,
  someSeconds,
  whole,
  words,
  type Kind,
  type Values,
} from "../../config/key-table.ts";
import { badValue } from "../../config/source.ts";

/** How a cluster of type `simulated` behaves. */

const rate: Kind<number> = {
  schema: z.number({ error: "must be a number between 0 and 1" }),
  read: (value: number, source, at) =>
    value >= 0 && value <= 1 ? value : badValue(source, at, `must be between 0 and 1, not ${value}`),
};

export const SIMULATION_KEYS = {
  nodes: whole(1, 1000),
  "cores-per-node": whole(1, 100_000),
  partitions: words,
  "queue-wait": seconds,
  "refusal-rate": rate,
  "failure-rate": rate,
  "preemption-rate": rate,
  "node-loss-rate": rate,
  "trouble-after": seconds,
  "repair-time": seconds,
  "walltime-delay": seconds,
  "kill-after": someSeconds,
  seed: whole(0, 2 ** 31 - 1),
} as const;

export type SimulationValues = Values<typeof SIMULATION_KEYS>;

const SimulationMap = z.strictObject(shapeOf(SIMULATION_KEYS), { error: "must be a map of keys and values" });

export const simulation: Kind<SimulationValues> = {
  schema: SimulationMap,
  plan: { keys: planOf(SIMULATION_KEYS) },
  names: Object.keys(SIMULATION_KEYS),
  read: (value: z.infer<typeof SimulationMap>, source, at) =>
    readKeys(SIMULATION_KEYS, source, at, value).values as SimulationValues,
};
