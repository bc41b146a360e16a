import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** A task's own cgroup (v2): it helps to end the task, but is never required; every step may fail silently. */

const PATIENCE = 200;

export const makeCgroup = (parent: string, token: string): string | null => {
  const path = join(parent, (token || "_").replace(/[^A-Za-z0-9._-]/g, "_").replace(/^\./, "_"));
  try {
    mkdirSync(path);
    return path;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EEXIST" ? path : null;
  }
};

const put = (path: string, text: string): boolean => {
  try {
    writeFileSync(path, text, { flag: "r+" });
    return true;
  } catch {
    return false; // no such controller file, or not delegated to us
  }
};

export const joinCgroup = (path: string, pid: number): boolean => put(join(path, "cgroup.procs"), String(pid));

export const killCgroup = (path: string): boolean => put(join(path, "cgroup.kill"), "1");

/** The most memory that was in it at once; 0 where the kernel (before 5.19) or the group does not count. */
export const readCgroupPeak = (path: string): number => {
  try {
    return Number.parseInt(readFileSync(join(path, "memory.peak"), "latin1"), 10) || 0;
  } catch {
    return 0;
  }
};

/** Processes that the kernel killed for memory, by memory.events (v2) or memory.oom_control (v1); 0 if nobody counts. */
export const readOomKills = (file: string): number => {
  try {
    return Number(/^oom_kill (\d+)$/m.exec(readFileSync(file, "latin1"))?.[1] ?? 0);
  } catch {
    return 0;
  }
};

/** Kills what is left in it and removes it, waiting up to a second for dying processes. */
export const removeCgroup = async (path: string): Promise<void> => {
  killCgroup(path);
  for (let attempt = 0; attempt < PATIENCE; attempt++) {
    try {
      return rmdirSync(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EBUSY") return undefined;
      await delay(5);
    }
  }
};
