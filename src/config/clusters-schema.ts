import { z } from "zod";
import { ALL_QUEUE_KEYS, CLUSTER_KEYS, CLUSTER_TYPES, SUGGESTED_QUEUE_KEYS } from "./cluster-keys.ts";
import { FleetInput } from "./fleet-keys.ts";
import { planOf, shapeOf } from "./key-table.ts";
import { LAUNCH_KEYS } from "./launch-keys.ts";
import type { TextPlan } from "./yaml-document.ts";

/** The shape of clusters.yaml; clusters-file.ts checks what the values mean and puts the layers together. */

const text = z.string({ error: "must be text" });
const whole = z.number({ error: "must be a whole number" }).int({ error: "must be a whole number" });
const size = z.union([z.number(), z.string()], { error: "must be a size such as 500M or 1G" });

const map = { error: "must be a map of keys and values" };

export const QueueInput = z.strictObject(
  { template: text.optional(), fleet: FleetInput.optional(), ...shapeOf(ALL_QUEUE_KEYS) },
  map,
);

export const ClusterInput = z.strictObject(
  {
    type: z.enum(CLUSTER_TYPES, { error: `must be one of ${CLUSTER_TYPES.join(", ")}` }).optional(),
    queues: z.record(z.string(), QueueInput, map).optional(),
    fleet: FleetInput.optional(),
    ...shapeOf(CLUSTER_KEYS),
    ...shapeOf(LAUNCH_KEYS),
    ...shapeOf(ALL_QUEUE_KEYS),
  },
  map,
);

export const LimitsInput = z.strictObject(
  {
    "tasks-per-run": whole.optional(),
    losses: whole.optional(),
    "output-per-task": size.optional(),
    "output-per-run": size.optional(),
  },
  map,
);

export const ClustersInput = z.strictObject(
  {
    default: text.optional(),
    clusters: z.record(z.string(), ClusterInput, map).optional(),
    "keep-history": z.boolean({ error: "must be true or false" }).optional(),
    limits: LimitsInput.optional(),
  },
  map,
);

export type QueueInput = z.infer<typeof QueueInput>;
export type ClusterInput = z.infer<typeof ClusterInput>;
export type ClustersInput = z.infer<typeof ClustersInput>;

const asText: TextPlan = { text: true };
const queuePlan = planOf(ALL_QUEUE_KEYS);

export const CLUSTERS_PLAN: TextPlan = {
  keys: {
    default: asText,
    clusters: {
      rest: {
        keys: {
          ...planOf(CLUSTER_KEYS),
          ...planOf(LAUNCH_KEYS),
          ...queuePlan,
          queues: { rest: { keys: { template: asText, ...queuePlan } } },
        },
      },
    },
  },
};

/** Names worth suggesting for a key that is not known. */
export const QUEUE_NAMES: readonly string[] = ["template", "fleet", ...SUGGESTED_QUEUE_KEYS];
export const CLUSTER_NAMES: readonly string[] = [
  "type",
  "queues",
  "fleet",
  ...Object.keys(CLUSTER_KEYS),
  ...Object.keys(LAUNCH_KEYS),
  ...SUGGESTED_QUEUE_KEYS,
];
