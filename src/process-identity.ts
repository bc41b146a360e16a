import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { isDead, readProcessStat, statNow } from "./process-stat.ts";

/** Which process, for readers on this host and on others. Pids mean nothing on another host or in another namespace. */
export interface ProcessIdentity {
  readonly host: string;
  readonly bootId: string;
  readonly pidNamespace: string;
  readonly pid: number;
  /** Clock ticks after boot at which it started: tells it from a later process with the same pid. */
  readonly pidStart: string;
}

const orNothing = (read: () => string): string => {
  try {
    return read().trim();
  } catch {
    return "";
  }
};

export const identify = (pid: number = process.pid, host: string = hostname()): ProcessIdentity => ({
  host,
  bootId: orNothing(() => readFileSync("/proc/sys/kernel/random/boot_id", "latin1")),
  pidNamespace: orNothing(() => readlinkSync("/proc/self/ns/pid")),
  pid,
  pidStart: statNow(pid)?.start ?? "",
});

/** Works even if /proc cannot be read for the moment: no file is opened. */
const exists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
};

/**
 * Whether `other` runs, as far as `self` can know. A zombie and a pid that now belongs to another process are dead; a
 * stopped process is alive; another host, boot or pid namespace is `elsewhere`.
 */
export const whereabouts = async (
  other: ProcessIdentity,
  self: ProcessIdentity,
): Promise<"alive" | "dead" | "elsewhere"> => {
  const here = other.host === self.host && other.bootId === self.bootId && other.pidNamespace === self.pidNamespace;
  if (!here) return "elsewhere";
  const stat = await readProcessStat(other.pid);
  if (stat === undefined) return exists(other.pid) ? "alive" : "dead";
  return !isDead(stat) && stat.start === other.pidStart ? "alive" : "dead";
};

const isText = (value: unknown): value is string => typeof value === "string";

export const parseIdentity = (body: Readonly<Record<string, unknown>>): ProcessIdentity | undefined => {
  const { host, bootId, pidNamespace, pid, pidStart } = body;
  if (!isText(host) || !isText(bootId) || !isText(pidNamespace) || !isText(pidStart)) return undefined;
  if (!Number.isSafeInteger(pid) || (pid as number) <= 0) return undefined;
  return { host, bootId, pidNamespace, pid: pid as number, pidStart };
};
