import { z } from "zod";
import { FleetInput } from "./fleet-keys.ts";
import type { TextPlan } from "./yaml-document.ts";

/** The shape of clusters.yaml; clusters-file.ts checks what the values mean and puts the layers together. */

const text = z.string({ error: "must be text" });
const amount = z.union([z.number(), z.string()], { error: "must be a number, or a size such as 16G" });
const duration = z.union([z.number(), z.string()], { error: "must be a duration such as 90, 10m or 04:00:00" });
const whole = z.number({ error: "must be a whole number" }).int({ error: "must be a whole number" });
const flag = z.boolean({ error: "must be true or false" });
const lines = z.union([text, z.array(text)], { error: "must be a list of lines" });
const resources = z.record(z.string(), amount, { error: "must be a map of names and amounts" });

export const CLUSTER_TYPES = ["slurm", "pbs", "sge", "oar", "local", "simulated"] as const;

const map = { error: "must be a map of keys and values" };

export const QueueInput = z.strictObject(
  {
    template: text.optional(),
    partition: text.optional(),
    account: text.optional(),
    qos: text.optional(),
    constraint: text.optional(),
    nodes: whole.optional(),
    cores: whole.optional(),
    memory: amount.optional(),
    gpus: whole.optional(),
    tmp: amount.optional(),
    resources: resources.optional(),
    walltime: duration.optional(),
    launcher: text.optional(),
    options: lines.optional(),
    prologue: lines.optional(),
    fleet: FleetInput.optional(),
    signal: text.optional(),
    "signal-before": duration.optional(),
  },
  map,
);

export const ClusterInput = z.strictObject(
  {
    type: z.enum(CLUSTER_TYPES, { error: `must be one of ${CLUSTER_TYPES.join(", ")}` }).optional(),
    launcher: text.optional(),
    queues: z.record(z.string(), QueueInput, map).optional(),
    prologue: lines.optional(),
    resources: resources.optional(),
    scratch: text.optional(),
    grace: duration.optional(),
    pin: flag.optional(),
    executor: z
      .union([z.literal("process"), z.literal("null"), z.null()], { error: "must be process or null" })
      .transform((value) => value ?? ("null" as const))
      .optional(),
  },
  map,
);

export const ClustersInput = z.strictObject(
  {
    default: text.optional(),
    clusters: z.record(z.string(), ClusterInput, map).optional(),
    limits: z.strictObject({ "tasks-per-run": whole.optional(), losses: whole.optional() }, map).optional(),
  },
  map,
);

export type QueueInput = z.infer<typeof QueueInput>;
export type ClusterInput = z.infer<typeof ClusterInput>;
export type ClustersInput = z.infer<typeof ClustersInput>;

const asText: TextPlan = { text: true };
const textLines: TextPlan = { text: true, items: asText };
const queuePlan: TextPlan = {
  keys: {
    template: asText,
    partition: asText,
    account: asText,
    qos: asText,
    constraint: asText,
    launcher: asText,
    options: textLines,
    prologue: textLines,
    signal: asText,
  },
};

export const CLUSTERS_PLAN: TextPlan = {
  keys: {
    default: asText,
    clusters: {
      rest: {
        keys: {
          launcher: asText,
          scratch: asText,
          executor: asText,
          prologue: textLines,
          queues: { rest: queuePlan },
        },
      },
    },
  },
};
