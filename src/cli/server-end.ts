import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { hostname } from "node:os";
import { type Endpoint, readEndpoint } from "../protocol/endpoint.ts";

/** A process that ended and was not collected yet; under an init that never collects, as in containers, for ever. */
const isZombie = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return /^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    // No /proc, or it has just gone: the signal will show.
    return false;
  }
};

/** Whether a process of this machine lives. A pid of another machine means nothing here. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
};

/** Whether the server that wrote this endpoint is surely dead. */
export const isSurelyDead = (endpoint: Endpoint): boolean => endpoint.host === hostname() && !isAlive(endpoint.pid);

/** Whether a server has left: its endpoint is withdrawn, or a successor's, and its process has ended. */
const isGone = async (home: string, left: Endpoint): Promise<boolean> => {
  const now = await readEndpoint(home);
  if (left.host === hostname()) return !isAlive(left.pid);
  return now === undefined || now.epoch !== left.epoch;
};

/** Waits until a server is gone; false when `timeout` (milliseconds) passed first. `tick` is called now and then. */
export const untilGone = async (
  home: string,
  left: Endpoint,
  { timeout = Infinity, tick }: { timeout?: number; tick?: () => Promise<void> } = {},
): Promise<boolean> => {
  const start = performance.now();
  for (let round = 1; !(await isGone(home, left)); round++) {
    if (performance.now() - start > timeout) return false;
    await sleep(Math.min(100, 10 * round));
    if (round % 20 === 0) await tick?.();
  }
  return true;
};
