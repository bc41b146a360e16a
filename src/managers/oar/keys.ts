import { line, name, type Kind } from "../../config/key-table.ts";
import type { QueueJob } from "../../config/queue-job.ts";
import { badValue } from "../../config/source.ts";

import type { Problem } from "../manager.ts";

/** What only OAR understands. */

const propertyName: Kind<string | null> = {
  ...name,
  read: (value: string, source, at) => {
    if (value === "none") return null;
    if (!/^\w+$/.test(value))
      badValue(source, at, "must be the name of a property, or none", "`oarnodes` shows the properties.");
    return value;
  },
};

export const OAR_KEYS = {
  "resource-spec": line,
  property: line,
  "memory-per-core-property-name": propertyName,
} as const;

export interface OarQueue {
  readonly resourceSpec?: string;
  readonly property?: string;
  /** Null: declared not applicable. */
  readonly memoryPerCorePropertyName?: string | null;
}

export const oarProblem = ({ own: oar, ...asks }: QueueJob<OarQueue>): Problem | undefined => {
  if (asks.memory !== undefined && oar.memoryPerCorePropertyName === undefined)
    return {
      key: "memory",
      detail: "OAR knows memory only as a property of its resources: memory-per-core-property-name must name it",
      remedy:
        "Add memory-per-core-property-name: NAME (`oarnodes` shows the properties), or none to ask for no memory.",
    };
  if ((asks.gpus ?? 0) > 0 && oar.resourceSpec === undefined)
    return {
      key: "gpus",
      detail: "OAR sites differ in how jobs ask for GPUs",
      remedy: "Write the request yourself: resource-spec: /nodes=1/gpu=2.",
    };
  return undefined;
};
