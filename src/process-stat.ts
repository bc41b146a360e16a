import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** What /proc says about a process. */
export interface ProcessStat {
  /** One letter; Z and X are dead. */
  readonly state: string;
  /** Clock ticks after boot at which it started: tells it from a later process with the same pid. */
  readonly start: string;
  /** The process that leads its session. */
  readonly session: string;
}

const parse = (text: string): ProcessStat | undefined => {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return text === "" || fields.length < 20 ? undefined : { state: fields[0]!, session: fields[3]!, start: fields[19]! };
};

/** Fields 3, 6 and 22 of /proc/PID/stat (the name before them may contain anything, even ")"); undefined without a file. */
export const readProcessStat = async (pid: number | string): Promise<ProcessStat | undefined> =>
  parse(await readFile(`/proc/${pid}/stat`, "latin1").catch(() => ""));

/** The same, at once: the kernel has it in memory, and it waits for nothing that a process may be stuck in. */
export const statNow = (pid: number | string): ProcessStat | undefined => {
  try {
    return parse(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return undefined;
  }
};

/** Whether a process is over, even one that nobody has waited for yet. */
export const isOver = (pid: number): boolean => isDead(statNow(pid));

export const isDead = (stat: ProcessStat | undefined): boolean =>
  stat === undefined || stat.state === "Z" || stat.state === "X";
