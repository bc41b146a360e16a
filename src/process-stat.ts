import { readFile } from "node:fs/promises";

/** What /proc says about a process. */
export interface ProcessStat {
  /** One letter; Z and X are dead. */
  readonly state: string;
  /** Clock ticks after boot at which it started: tells it from a later process with the same pid. */
  readonly start: string;
}

/** Fields 3 and 22 of /proc/PID/stat (the name before them may contain anything, also ")"); undefined if there is none. */
export const readProcessStat = async (pid: number | string): Promise<ProcessStat | undefined> => {
  const text = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return text === "" || fields.length < 20 ? undefined : { state: fields[0]!, start: fields[19]! };
};

export const isDead = (stat: ProcessStat | undefined): boolean =>
  stat === undefined || stat.state === "Z" || stat.state === "X";
