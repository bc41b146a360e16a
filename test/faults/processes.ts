import { readFileSync, readdirSync } from "node:fs";
import { until } from "../until.ts";

/** Looks at processes as the system shows them, and sends signals that tolerate a process that has just ended. */

const read = (path: string): string => {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
};

export const isAlive = (pid: number): boolean => {
  const stat = read(`/proc/${pid}/stat`);
  return stat !== "" && !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
};

export interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly words: readonly string[];
}

/** Living processes whose arguments meet a condition. */
export const processesWith = (matches: (words: readonly string[]) => boolean): Seen[] => {
  const found: Seen[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const words = read(`/proc/${name}/cmdline`).split("\0");
    if (!matches(words) || !isAlive(pid)) continue;
    const stat = read(`/proc/${name}/stat`);
    found.push({ pid, parent: Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]), words });
  }
  return found;
};

/** False if it had already ended. */
export const signal = (pid: number, name: NodeJS.Signals): boolean => {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
};

export const untilDead = async (pid: number): Promise<void> => {
  await until(`the end of process ${pid}`, () => !isAlive(pid));
};

export const killHard = async (pid: number): Promise<void> => {
  signal(pid, "SIGKILL");
  await untilDead(pid);
};
