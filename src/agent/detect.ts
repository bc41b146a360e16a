import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { MAX_BYTES } from "../core/quantities.ts";
import { FRACTION, toUnits, type Resources } from "../core/resources.ts";
import { readCgroupLimits, type CgroupLimits } from "./cgroup.ts";
import { parseCpuList } from "./cpu-list.ts";
import { declareGpus, detectGpus, type Environment, type Gpus } from "./gpus.ts";
import type { Probe } from "./probe.ts";

export interface DetectOptions {
  /** Amounts in units from clusters.yaml. They win over what is found, and may exceed it. */
  readonly declared?: Resources;
  /** What the manager gave its job on this node; the agent takes no more, even if nothing enforces the limit. */
  readonly managerCpus?: number | undefined;
  /** Nothing but what is declared is offered, and looked for. */
  readonly only?: boolean;
  readonly env?: Environment;
  /** Where /proc and /sys are found; tests give a fixture tree. */
  readonly root?: string;
  readonly probe?: Probe;
}

export interface DetectedResources {
  /** Ids of cores that tasks may be pinned to. Fewer than `resources.cpus` when more are declared than exist. */
  readonly cpus: readonly number[];
  readonly memBytes: number;
  /** As many indices as `resources.gpus` asks for, rounded up. */
  readonly gpus: Gpus;
  /** All amounts in units, including those with user-defined names. */
  readonly resources: Resources;
}

/** Nobody means to declare more than this, and every device takes memory. */
const MOST_DEVICES = 65_536;
const NO_GPUS: Gpus = { indices: [], vendor: null };

const devices = (units: number): number => Math.min(MOST_DEVICES, Math.ceil(units / FRACTION));

const readOptional = (path: string): string => {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
};

const allowedCpus = (root: string, limits: CgroupLimits): number[] => {
  const status = readOptional(join(root, "proc/self/status"));
  let ids = parseCpuList(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? "");
  if (ids.length === 0) ids = Array.from({ length: availableParallelism() }, (_, id) => id);
  const cpuset = new Set(limits.cpuset ?? ids);
  const inside = ids.filter((id) => cpuset.has(id));
  // A cpuset that shares nothing with the affinity is stale or from another namespace: the affinity is the truth.
  if (inside.length > 0) ids = inside;
  return ids.slice(0, limits.cpus ?? ids.length);
};

const physicalMemory = (root: string): number => {
  const kb = /^MemTotal:\s*(\d+) kB/m.exec(readOptional(join(root, "proc/meminfo")))?.[1];
  return kb === undefined ? totalmem() : Number(kb) * 1024;
};

/**
 * What this node offers to tasks. Never fails: what it cannot read it takes from the operating system, or leaves out.
 */
export const detectResources = async (options: DetectOptions): Promise<DetectedResources> => {
  const { declared = {}, root = "/", only = false } = options;
  const declaredGpus = declared["gpus"] ?? (only ? 0 : undefined);
  const limits = readCgroupLimits(root);
  const memory = physicalMemory(root);
  const found = declaredGpus === 0 ? NO_GPUS : await detectGpus(options.env ?? process.env, options.probe);
  const allowed = allowedCpus(root, limits).slice(0, options.managerCpus);
  const declaredCpus = declared["cpus"] ?? toUnits("cpus", allowed.length);
  const gpus = declaredGpus === undefined ? found : declareGpus(found, devices(declaredGpus));
  const memBytes = Math.min(memory, limits.memBytes ?? memory);

  const resources: Record<string, number> = {
    // nobody reserves temporary space unless somebody said how much there is
    ...(!only && { mem: memBytes, tmp: MAX_BYTES }),
    ...(gpus.indices.length > 0 && { gpus: toUnits("gpus", gpus.indices.length) }),
    ...declared,
    cpus: Math.min(declaredCpus, MOST_DEVICES * FRACTION),
    ...(declared["gpus"] !== undefined && { gpus: Math.min(declared["gpus"], MOST_DEVICES * FRACTION) }),
  };
  return {
    cpus: allowed.slice(0, devices(declaredCpus)),
    memBytes: resources["mem"] ?? memBytes,
    gpus,
    resources,
  };
};
