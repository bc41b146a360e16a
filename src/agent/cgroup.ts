import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseCpuList } from "./cpu-list.ts";

/**
 * What the control groups of this process allow. Limits hold for a whole subtree, so every ancestor counts; a file that
 * is missing or makes no sense limits nothing.
 */
export interface CgroupLimits {
  /** Whole cpus that the tightest quota allows; at least 1. */
  readonly cpus?: number;
  readonly cpuset?: readonly number[];
  readonly memBytes?: number;
}

interface Mount {
  readonly point: string;
  /** The group that is visible as the mount point: not `/` inside containers. */
  readonly root: string;
  /** Controllers of a v1 hierarchy, undefined for v2. */
  readonly controllers?: readonly string[];
}

/** v1 writes "no limit" as a number near 2^63. */
const ABSURD_BYTES = 2 ** 56;
const DEEPEST = 64;

/** They are small, and of the kernel's: to wait for them costs more than to read them. */
const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, "latin1").trim();
  } catch {
    return undefined;
  }
};

const unescapeMount = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

const parseMounts = (mountinfo: string): Mount[] => {
  const mounts: Mount[] = [];
  for (const line of mountinfo.split("\n")) {
    const [left, right] = line.split(" - ", 2);
    const [type, , options] = (right ?? "").split(" ");
    if (type !== "cgroup" && type !== "cgroup2") continue;
    const fields = left!.split(" ");
    const mount = { root: unescapeMount(fields[3] ?? "/"), point: unescapeMount(fields[4] ?? "/sys/fs/cgroup") };
    mounts.push(type === "cgroup2" ? mount : { ...mount, controllers: (options ?? "").split(",") });
  }
  return mounts;
};

/** The directories of a group and of its visible ancestors, innermost first. */
const lineage = (mount: Mount, group: string): string[] => {
  const root = mount.root === "/" ? "" : mount.root;
  let inside = group === root || group.startsWith(`${root}/`) ? group.slice(root.length) : "";
  // Seen from inside a namespace, a group outside of it starts with `/..`: only the mount point is known.
  if (inside.split("/").includes("..")) inside = "";
  const parts = inside.split("/").filter((part) => part !== "");
  const directories: string[] = [];
  for (let depth = Math.min(parts.length, DEEPEST); depth >= 0; depth--) {
    directories.push(join(mount.point, ...parts.slice(0, depth)));
  }
  return directories;
};

const parseBytes = (text: string | undefined): number | undefined => {
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  const bytes = Number(text);
  return bytes > 0 && bytes < ABSURD_BYTES ? bytes : undefined;
};

const parseQuota = (quota: string | undefined, period: string | undefined): number | undefined => {
  if (quota === undefined || period === undefined || !/^\d+$/.test(quota) || !/^\d+$/.test(period)) return undefined;
  const cpus = Number(quota) / Number(period);
  return cpus > 0 && Number.isFinite(cpus) ? Math.max(1, Math.floor(cpus)) : undefined;
};

const least = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.min(a, b);

/** A group of this process: its directories, innermost first, and its controllers if the hierarchy is v1. */
interface OwnGroup {
  readonly names: readonly string[] | undefined;
  readonly directories: readonly string[];
}

const ownGroups = (root: string): OwnGroup[] => {
  const groups = readText(join(root, "proc/self/cgroup")) ?? "";
  const mounts = parseMounts(readText(join(root, "proc/self/mountinfo")) ?? "");
  const found: OwnGroup[] = [];
  for (const line of groups.split("\n")) {
    const match = /^(\d+):([^:]*):(\/.*)$/.exec(line);
    if (match === null) continue;
    const names = match[2] === "" ? undefined : match[2]!.split(",");
    const mount = mounts.find((each) =>
      names === undefined
        ? each.controllers === undefined
        : names.some((name) => each.controllers?.includes(name) === true),
    );
    if (mount !== undefined) found.push({ names, directories: lineage(mount, match[3]!) });
  }
  return found;
};

/**
 * The file in which the kernel counts what it killed for memory in the innermost group of this process, and so of what
 * it starts: memory.oom_control (v1) or memory.events (v2, which also counts the groups below). Undefined if nobody counts.
 */
export const oomKillsFile = (root = "/"): string | undefined => {
  for (const { names, directories } of ownGroups(root)) {
    if (names?.includes("memory") === false) continue;
    const file = join(root, directories[0]!, names === undefined ? "memory.events" : "memory.oom_control");
    if (/^oom_kill \d+$/m.test(readText(file) ?? "")) return file;
  }
  return undefined;
};

/** `root` is where /proc and the mount points are found: `/` except in tests. */
export const readCgroupLimits = (root: string): CgroupLimits => {
  let cpus: number | undefined;
  let memBytes: number | undefined;
  let cpuset: readonly number[] | undefined;
  const narrow = (text: string | undefined): void => {
    const list = parseCpuList(text ?? "");
    if (list.length > 0 && (cpuset === undefined || list.length < cpuset.length)) cpuset = list;
  };

  for (const { names, directories } of ownGroups(root)) {
    for (const directory of directories) {
      const read = (file: string): string | undefined => readText(join(root, directory, file));
      if (names === undefined) {
        const [quota, period] = (read("cpu.max") ?? "").split(" ");
        cpus = least(cpus, parseQuota(quota, period));
        memBytes = least(memBytes, parseBytes(read("memory.max")));
        narrow(read("cpuset.cpus.effective"));
        continue;
      }
      if (names.includes("cpu")) {
        cpus = least(cpus, parseQuota(read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")));
      }
      if (names.includes("memory")) memBytes = least(memBytes, parseBytes(read("memory.limit_in_bytes")));
      if (names.includes("cpuset")) narrow(read("cpuset.effective_cpus") ?? read("cpuset.cpus"));
    }
  }
  return {
    ...(cpus !== undefined && { cpus }),
    ...(memBytes !== undefined && { memBytes }),
    ...(cpuset !== undefined && { cpuset }),
  };
};
