import { accessSync, constants, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../until.ts";

/** A real control group below the one of this process, whose memory the kernel limits: what a manager gives a job. */
export interface MemoryGroup {
  /** Words before a command that run it inside. */
  readonly inside: readonly string[];
  remove(): Promise<void>;
}

const ROOT = "/sys/fs/cgroup";
const LIMITS = { 1: "memory.limit_in_bytes", 2: "memory.max" } as const;

/** Where this process's memory is counted, and by which version of the kernel's interface. */
const own = (): { directory: string; version: 1 | 2 } | undefined => {
  const groups = readFileSync("/proc/self/cgroup", "utf8");
  for (const [pattern, root, version] of [
    [/^\d+:(?:\w+,)*memory(?:,\w+)*:(\/.*)$/m, join(ROOT, "memory"), 1],
    [/^0::(\/.*)$/m, ROOT, 2],
  ] as const) {
    const path = pattern.exec(groups)?.[1];
    if (path === undefined) continue;
    try {
      accessSync(join(root, path, "cgroup.procs"), constants.W_OK);
      return { directory: join(root, path), version };
    } catch {
      // not mounted, or not ours
    }
  }
  return undefined;
};

const removed = (path: string): true | undefined => {
  try {
    rmdirSync(path);
    return true;
  } catch {
    return undefined;
  }
};

/** The group's directory; undefined where none of that kind can be made here. */
const make = (bytes: number): string | undefined => {
  const found = own();
  if (found === undefined) return undefined;
  const path = join(found.directory, `slipway-test-${process.pid}`);
  try {
    mkdirSync(path);
    writeFileSync(join(path, LIMITS[found.version]), String(bytes), { flag: "r+" });
    return path;
  } catch {
    removed(path);
    return undefined;
  }
};

export const makeMemoryGroup = (bytes: number): MemoryGroup => {
  const path = make(bytes);
  if (path === undefined) throw new Error("no control group with a limit can be made here");
  return {
    inside: ["sh", "-c", `echo $$ > '${join(path, "cgroup.procs")}'; exec "$@"`, "sh"],
    remove: async () => void (await until("the group to be empty", () => removed(path))),
  };
};

export const canMakeMemoryGroup = (): boolean => {
  const path = make(2 ** 30);
  return path !== undefined && removed(path) === true;
};
