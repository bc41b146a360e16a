import { createProbe, type Probe } from "./probe.ts";

/** The devices that an agent may hand out. With a vendor of null (unknown), tasks get the variables of every vendor. */
export interface Gpus {
  /** As CUDA_VISIBLE_DEVICES and the like name them: indices or UUIDs. */
  readonly indices: readonly string[];
  readonly vendor: "nvidia" | "amd" | null;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const MOST_GPUS = 1024;
const NONE: Gpus = { indices: [], vendor: null };

/**
 * A VISIBLE_DEVICES value as its runtime reads it: the list ends at the first entry that is not a device, so an empty
 * value, `-1` and `NoDevFiles` mean none. Undefined when the variable is not set.
 */
export const parseVisibleDevices = (value: string | undefined): string[] | undefined => {
  if (value === undefined) return undefined;
  const devices = new Set<string>();
  for (const part of value.split(",")) {
    const device = part.trim();
    if (!/^(?:\d{1,4}(?:\.\d{1,4})?|(?:GPU|MIG)-[\w./-]{1,128})$/.test(device) || devices.size >= MOST_GPUS) break;
    devices.add(device);
  }
  return [...devices];
};

/** HIP counts the devices that ROCR left visible, so its indices refer to ROCR's list. */
const compose = (outer: string[] | undefined, inner: string[] | undefined): string[] | undefined => {
  if (outer === undefined || inner === undefined) return outer ?? inner;
  return inner.flatMap((device) => {
    if (outer.includes(device) && !/^\d+$/.test(device)) return [device];
    return /^\d+$/.test(device) && outer[Number(device)] !== undefined ? [outer[Number(device)]!] : [];
  });
};

/** What the batch system or the user assigned; undefined if they said nothing. */
export const gpusFromEnvironment = (env: Environment): Gpus | undefined => {
  const cuda = parseVisibleDevices(env["CUDA_VISIBLE_DEVICES"]);
  const rocr = parseVisibleDevices(env["ROCR_VISIBLE_DEVICES"]);
  const hip = parseVisibleDevices(env["HIP_VISIBLE_DEVICES"]) ?? parseVisibleDevices(env["GPU_DEVICE_ORDINAL"]);
  const intel = parseVisibleDevices(env["ZE_AFFINITY_MASK"]);
  // Batch systems set every vendor's variable to the same list when they do not know the vendor themselves.
  if (rocr === undefined && cuda !== undefined && cuda.length > 0) return { indices: cuda, vendor: "nvidia" };
  if (rocr !== undefined && cuda !== undefined && rocr.length > 0 && cuda.join() === rocr.join()) {
    return { indices: cuda, vendor: null };
  }
  const amd = compose(rocr, hip);
  if (amd !== undefined && amd.length > 0) return { indices: amd, vendor: "amd" };
  if (cuda !== undefined && cuda.length > 0) return { indices: cuda, vendor: "nvidia" };
  if (intel !== undefined && intel.length > 0) return { indices: intel, vendor: null };
  return cuda === undefined && amd === undefined && intel === undefined ? undefined : NONE;
};

const unique = (matches: Iterable<RegExpMatchArray>): string[] => {
  const indices = new Set<string>();
  for (const match of matches) if (indices.size < MOST_GPUS) indices.add(match[1]!);
  return [...indices].toSorted((a, b) => Number(a) - Number(b));
};

/** `rocm-smi --showid` in either form: `"card0": {…}` or `GPU[0] : …`. */
const parseRocm = (text: string): string[] => {
  const cards = unique(text.matchAll(/"card(\d{1,4})"\s*:/g));
  return cards.length > 0 ? cards : unique(text.matchAll(/^\s*GPU\[(\d{1,4})\]/gm));
};

const probeNvidia = async (probe: Probe): Promise<string[]> => {
  const text = await probe("nvidia-smi", ["--query-gpu=index", "--format=csv,noheader"]);
  return unique((text ?? "").matchAll(/^\s*(\d{1,4})\s*$/gm));
};

const probeRocm = async (probe: Probe): Promise<string[]> => {
  const json = await probe("rocm-smi", ["--showid", "--json"]);
  const cards = parseRocm(json ?? "");
  // A tool that printed no JSON may be too old for the option.
  return cards.length > 0 || json === undefined ? cards : parseRocm((await probe("rocm-smi", ["--showid"])) ?? "");
};

export const detectGpus = async (env: Environment, probe: Probe = createProbe()): Promise<Gpus> => {
  const given = gpusFromEnvironment(env);
  if (given !== undefined) return given;
  const ask: Probe = (file, args) => probe(file, args).catch(() => undefined);
  const [nvidia, amd] = await Promise.all([probeNvidia(ask), probeRocm(ask)]);
  if (nvidia.length > 0) return { indices: nvidia, vendor: "nvidia" };
  return amd.length > 0 ? { indices: amd, vendor: "amd" } : NONE;
};

/** Exactly `count` devices: the first of those found, and made-up indices where more are declared than found. */
export const declareGpus = (found: Gpus, count: number): Gpus => {
  const indices = found.indices.slice(0, count);
  const taken = new Set(found.indices);
  for (let next = 0; indices.length < count; next++) if (!taken.has(String(next))) indices.push(String(next));
  return { indices, vendor: indices.length === 0 ? null : found.vendor };
};
