import { pickKeys, type Values } from "../../config/key-table.ts";
import type { Manager } from "../manager.ts";
import { simulation } from "./keys.ts";

const CLUSTER_KEYS = { simulation } as const;
export type SimulatedCluster = Values<typeof CLUSTER_KEYS>;

/** A batch system that exists only here, for trying fleets and for tests that need trouble on demand. */
export const simulated = {
  title: "the simulation",
  keys: {},
  clusterKeys: CLUSTER_KEYS,
  understands: [],
  queue: () => ({}),
  cluster: (values) => pickKeys(CLUSTER_KEYS, values),
  isHere: true,
} satisfies Manager<unknown, SimulatedCluster>;
