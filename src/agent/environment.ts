import { fromUnits, type Resources } from "../core/resources.ts";
import type { Gpus } from "./gpus.ts";
import { pinnableCpus, type Slot } from "./slots.ts";

export interface TaskFacts {
  readonly runId: number;
  /** The number that people see: 17 in 3.17. */
  readonly taskIndex: number;
  readonly attempt: number;
  readonly name: string;
  /** The text that `{item}` stands for; null for a task without items. */
  readonly item: string | null;
  readonly slot: Slot;
  readonly resources: Resources;
  readonly token: string;
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
 * The variables every task gets, as `NAME=VALUE`; they win over the user's environment. (TMPDIR is the spawner's.) SLIPWAY_MEM and SLIPWAY_TMP are
 * bytes, 0 if the task asked for none. An item over the system's limit for one variable is left out, since the task
 * could not start with it.
 */
export const taskEnvironment = (facts: TaskFacts): string[] => {
  const { resources, slot } = facts;
  const cpus = fromUnits("cpus", resources["cpus"] ?? 0);
  const item = facts.item ?? "";
  const out = [
    `SLIPWAY_RUN=${facts.runId}`,
    `SLIPWAY_TASK=${facts.taskIndex}`,
    `SLIPWAY_ATTEMPT=${facts.attempt}`,
    `SLIPWAY_NAME=${facts.name}`,
    `SLIPWAY_CPUS=${cpus}`,
    `SLIPWAY_MEM=${resources["mem"] ?? 0}`,
    `SLIPWAY_GPUS=${fromUnits("gpus", resources["gpus"] ?? 0)}`,
    `SLIPWAY_TMP=${resources["tmp"] ?? 0}`,
    `SLIPWAY_CPU_IDS=${list(pinnableCpus(slot))}`,
  ];
  if (item.length < LONGEST_STRING / 4 || Buffer.byteLength(item) < LONGEST_STRING - "SLIPWAY_ITEM=".length) {
    out.push(`SLIPWAY_ITEM=${item}`);
  }
  for (const name in resources) {
    if (name === "cpus" || name === "gpus" || name === "mem" || name === "tmp") continue;
    out.push(`${resourceVariable(name)}=${fromUnits(name, resources[name]!)}`);
  }
  if (facts.env?.["OMP_NUM_THREADS"] === undefined) out.push(`OMP_NUM_THREADS=${Math.max(1, Math.floor(cpus))}`);
  if (facts.gpus.indices.length > 0) pushGpus(out, slot, facts.gpus.vendor);
  out.push(`SLIPWAY_TOKEN=${facts.token}`);
  return out;
};
