import { fromUnits, type Resources } from "../core/resources.ts";
import type { Gpus } from "./gpus.ts";
import { pinnableCpus, type Slot } from "./slots.ts";

export interface TaskFacts {
  /** The number that people see: 17 in 3.17. */
  readonly taskIndex: number;
  readonly attempt: number;
  /** The text that `{item}` stands for; null for a task without items. */
  readonly item: string | null;
  readonly token: string;
}

/** What the tasks of a group have in common in one slot. */
export interface SlotFacts {
  readonly runId: number;
  readonly name: string;
  readonly slot: Slot;
  readonly resources: Resources;
  /** The node's devices: `vendor` chooses the variables, which are set only where there are devices. */
  readonly gpus: Gpus;
  /** What the user set: if OMP_NUM_THREADS is there, it stays. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Linux refuses to execute with any one string longer than this, the NUL included. */
const LONGEST_STRING = 131_072;

const resourceVariable = (name: string): string =>
  `SLIPWAY_RESOURCE_${name.toUpperCase().replaceAll(/[^A-Z0-9_]/g, "_")}`;

const list = (values: readonly number[]): string => (values.length === 1 ? String(values[0]) : values.join(","));

const pushGpus = (out: string[], slot: Slot, vendor: Gpus["vendor"]): void => {
  let devices = "";
  let places = "";
  for (let nth = 0; nth < slot.gpus.length; nth++) {
    devices += nth === 0 ? slot.gpus[nth]!.index : `,${slot.gpus[nth]!.index}`;
    places += nth === 0 ? "0" : `,${nth}`;
  }
  out.push(`SLIPWAY_GPU_IDS=${devices}`);
  if (vendor !== "amd") out.push(`CUDA_VISIBLE_DEVICES=${devices}`);
  if (vendor !== "nvidia") {
    // HIP and OpenCL count among the devices that ROCR leaves visible: the same numbers in both would hide all but
    // device 0.
    out.push(`ROCR_VISIBLE_DEVICES=${devices}`, `HIP_VISIBLE_DEVICES=${places}`, `GPU_DEVICE_ORDINAL=${places}`);
  }
  if (vendor === null) out.push(`ZE_AFFINITY_MASK=${devices}`);
};

/**
 * The variables that the tasks of a group get in one slot, as `NAME=VALUE`; they win over the user's environment, and so
 * do those of taskEnvironment. (TMPDIR is the spawner's.) SLIPWAY_MEM and SLIPWAY_TMP are bytes, 0 if the task asked for
 * none.
 */
export const slotEnvironment = (facts: SlotFacts): string[] => {
  const { resources, slot } = facts;
  const cpus = fromUnits("cpus", resources["cpus"] ?? 0);
  const out = [
    `SLIPWAY_RUN=${facts.runId}`,
    `SLIPWAY_NAME=${facts.name}`,
    `SLIPWAY_CPUS=${cpus}`,
    `SLIPWAY_MEM=${resources["mem"] ?? 0}`,
    `SLIPWAY_GPUS=${fromUnits("gpus", resources["gpus"] ?? 0)}`,
    `SLIPWAY_TMP=${resources["tmp"] ?? 0}`,
    `SLIPWAY_CPU_IDS=${list(pinnableCpus(slot))}`,
  ];
  for (const name in resources) {
    if (name === "cpus" || name === "gpus" || name === "mem" || name === "tmp") continue;
    out.push(`${resourceVariable(name)}=${fromUnits(name, resources[name]!)}`);
  }
  if (facts.env?.["OMP_NUM_THREADS"] === undefined) out.push(`OMP_NUM_THREADS=${Math.max(1, Math.floor(cpus))}`);
  if (facts.gpus.indices.length > 0) pushGpus(out, slot, facts.gpus.vendor);
  return out;
};

/**
 * Those of one task. An item over the system's limit for one variable is left out, since the task could not start with
 * it.
 */
export const taskEnvironment = (facts: TaskFacts): string[] => {
  const item = facts.item ?? "";
  const out = [`SLIPWAY_TASK=${facts.taskIndex}`, `SLIPWAY_ATTEMPT=${facts.attempt}`, `SLIPWAY_TOKEN=${facts.token}`];
  if (item.length < LONGEST_STRING / 4 || Buffer.byteLength(item) < LONGEST_STRING - "SLIPWAY_ITEM=".length) {
    out.push(`SLIPWAY_ITEM=${item}`);
  }
  return out;
};
