import { z } from "zod";
import type { KeysAt } from "./check-shape.ts";
import { BUILT_IN, type ClusterKeys } from "./cluster-keys.ts";
import { FleetInput } from "./fleet-keys.ts";
import { planOf, shapeOf, type Keys } from "./key-table.ts";
import { OVERRIDE_KEYS } from "./launch-keys.ts";
import type { TextPlan } from "./yaml-document.ts";

/** The shape of clusters.yaml; clusters-file.ts checks what the values mean and puts the layers together. */

const text = z.string({ error: "must be text" });
const whole = z.number({ error: "must be a whole number" }).int({ error: "must be a whole number" });
const size = z.union([z.number(), z.string()], { error: "must be a size such as 500M or 1G" });

const map = { error: "must be a map of keys and values" };

export const LimitsInput = z.strictObject(
  {
    "tasks-per-run": whole.optional(),
    losses: whole.optional(),
    "output-per-task": size.optional(),
    "output-per-run": size.optional(),
  },
  map,
);

/** How people reach the page; page-keys.ts checks what the values mean. */
export const PageInput = z.strictObject(
  {
    hosts: z.array(text, { error: "must be a list of names" }).optional(),
    origin: text.optional(),
  },
  map,
);

const asText: TextPlan = { text: true };

const shapesOf = ({ managers, queue, cluster }: ClusterKeys) => {
  const types = Object.keys(managers);
  const QueueInput = z.strictObject(
    { template: text.optional(), fleet: FleetInput.optional(), ...shapeOf(queue) },
    map,
  );
  const ClusterInput = z.strictObject(
    {
      type: z.enum(types, { error: `must be one of ${types.join(", ")}` }).optional(),
      queues: z.record(z.string(), QueueInput, map).optional(),
      fleet: FleetInput.optional(),
      ...shapeOf(cluster),
      ...shapeOf(queue),
    },
    map,
  );
  const ClustersInput = z.strictObject(
    {
      default: text.optional(),
      modules: z.array(text, { error: "must be a list of paths" }).optional(),
      clusters: z.record(z.string(), ClusterInput, map).optional(),
      "keep-history": z.boolean({ error: "must be true or false" }).optional(),
      limits: LimitsInput.optional(),
      page: PageInput.optional(),
    },
    map,
  );
  return { QueueInput, ClusterInput, ClustersInput };
};

type Shapes = ReturnType<typeof shapesOf>;
export type QueueInput = z.infer<Shapes["QueueInput"]>;
export type ClusterInput = z.infer<Shapes["ClusterInput"]>;
export type ClustersInput = z.infer<Shapes["ClustersInput"]>;

/** How a clusters.yaml is read whose clusters may be of these managers. */
export interface ClustersFormat extends Shapes {
  readonly keys: ClusterKeys;
  readonly plan: TextPlan;
  readonly keysAt: KeysAt;
}

export const clustersFormat = (keys: ClusterKeys): ClustersFormat => {
  const shapes = shapesOf(keys);
  const queuePlan = planOf(keys.queue);
  const nested: Keys = { ...keys.queue, ...keys.cluster };
  const names = [...Object.keys(keys.cluster), ...keys.suggested];
  return {
    ...shapes,
    keys,
    plan: {
      keys: {
        default: asText,
        modules: { items: asText },
        page: { keys: { hosts: { items: asText }, origin: asText } },
        clusters: {
          rest: {
            keys: {
              ...planOf(keys.cluster),
              ...queuePlan,
              queues: { rest: { keys: { template: asText, ...queuePlan } } },
            },
          },
        },
      },
    },
    keysAt: (path) => {
      const last = String(path.at(-1));
      if (last === "limits") return Object.keys(LimitsInput.shape);
      if (path.length === 1 && last === "page") return Object.keys(PageInput.shape);
      if (last === "fleet") return Object.keys(FleetInput.shape);
      if (path.at(-2) === "partition_overrides") return OVERRIDE_KEYS;
      if (path.length === 4) return ["template", "fleet", ...keys.suggested];
      if (path.length === 2) return ["type", "queues", "fleet", ...names];
      const within = Object.hasOwn(nested, last) ? nested[last]!.names : undefined;
      return within ?? Object.keys(shapes.ClustersInput.shape);
    },
  };
};

/** With the managers that come with Slipway. */
export const BUILT_IN_FORMAT = clustersFormat(BUILT_IN);
