// CPU time of processes, from /proc.
import { readFileSync, readdirSync } from "node:fs";
import { execFileSync } from "node:child_process";

let tick;
/** Milliseconds of a clock tick, the unit of /proc/PID/stat. */
const tickMs = () => (tick ??= 1000 / Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" })));

/** Fields of /proc/PID/stat from the third on; a name may contain spaces and brackets. */
const statOf = (pid) => {
  const text = readFileSync(`/proc/${pid}/stat`, "latin1");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
};

/** Milliseconds that a process used itself, and those of its children that ended and were waited for. */
export const cpuOf = (pid) => {
  const [user, system, childUser, childSystem] = statOf(pid).slice(11, 15).map(Number);
  return { own: (user + system) * tickMs(), children: (childUser + childSystem) * tickMs() };
};

/** Microseconds that the main thread of a process has run: of a Node program, its event loop. */
export const mainThreadOf = (pid) =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "latin1").split(" ")[0]) / 1000;

/** Processes whose parent this is. */
export const childrenOf = (parent) =>
  readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return statOf(name)[1] === String(parent);
    } catch (error) {
      // It ended while we looked.
      if (error.code === "ENOENT" || error.code === "ESRCH") return false;
      throw error;
    }
  });

/** Megabytes (10^6) in memory now, and at most so far. */
export const memoryOf = (pid) => {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  const field = (name) => (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1]) * 1024) / 1e6;
  return { now: field("VmRSS"), peak: field("VmHWM") };
};

/** Whether a process lives, zombies not counted. */
export const isAlive = (pid) => {
  try {
    return statOf(pid)[0] !== "Z";
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ESRCH") return false;
    throw error;
  }
};
