import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { endianness } from "node:os";
import { join } from "node:path";

/** One line of the process table. */
export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks after boot; with the pid it identifies a process for ever. */
  readonly started: number;
  readonly rssPages: number;
}

/** After this many processes, reading continues in the next turn of the loop, so that a crowded node stalls nothing. */
const PER_TURN = 200;

const buffer = Buffer.allocUnsafe(4096);

const errorCode = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** Parses /proc/PID/stat. The name may hold spaces and brackets: fields count from its last bracket. */
export const parseStat = (text: string): Process | undefined => {
  const open = text.indexOf(" (");
  const close = text.lastIndexOf(") ");
  if (open <= 0 || close < open) return undefined;
  const fields = text.slice(close + 2).split(" ", 22);
  if (fields.length < 22) return undefined;
  return {
    pid: Number(text.slice(0, open)),
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    started: Number(fields[19]),
    rssPages: Number(fields[21]),
  };
};

/** Three system calls and no trip to the thread pool: a whole table costs a few milliseconds. */
const readStat = (procRoot: string, pid: string): Process | undefined => {
  let fd: number;
  try {
    fd = openSync(`${procRoot}/${pid}/stat`, "r");
  } catch {
    return undefined; // it ended meanwhile
  }
  try {
    return parseStat(buffer.toString("latin1", 0, readSync(fd, buffer, 0, buffer.length, 0)));
  } catch {
    return undefined;
  } finally {
    closeSync(fd);
  }
};

export const readProcessTable = async (procRoot: string): Promise<Map<number, Process>> => {
  const table = new Map<number, Process>();
  let read = 0;
  for (const name of await readdir(procRoot)) {
    const first = name.charCodeAt(0);
    if (first < 0x30 || first > 0x39) continue;
    const process = readStat(procRoot, name);
    if (process !== undefined) table.set(process.pid, process);
    if (++read % PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return table;
};

/** The value of a variable in a process's first environment; null if it is not set or we may not read it. */
export const readVariable = (procRoot: string, pid: number, name: string): string | null => {
  let environ: Buffer;
  try {
    environ = readFileSync(join(procRoot, String(pid), "environ"));
  } catch {
    return null;
  }
  const start = `${name}=`;
  for (let at = environ.indexOf(start); at >= 0; at = environ.indexOf(start, at + 1)) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    return environ.toString("utf8", at + start.length, end < 0 ? environ.length : end);
  }
  return null;
};

/**
 * Bytes of a process with shared pages divided among those who share them. Null if the kernel does not say (an old one,
 * or another user's process); 0 when the process has ended.
 */
const readPss = async (procRoot: string, pid: number): Promise<number | null> => {
  try {
    const text = await readFile(join(procRoot, String(pid), "smaps_rollup"), "latin1");
    const kb = /^Pss:\s+(\d+) kB/m.exec(text)?.[1];
    return kb === undefined ? 0 : Number(kb) * 1024;
  } catch (error) {
    if (errorCode(error) === "ESRCH") return 0;
    if (errorCode(error) !== "ENOENT") return null;
    return readStat(procRoot, String(pid)) === undefined ? 0 : null;
  }
};

/** What processes have together, shared pages counted once; no more is read once the sum is over `enough`. */
export const sumPss = async (
  procRoot: string,
  pageSize: number,
  processes: readonly Process[],
  enough: number,
): Promise<number> => {
  let bytes = 0;
  for (const { pid, rssPages } of processes) {
    bytes += (await readPss(procRoot, pid)) ?? rssPages * pageSize;
    if (bytes > enough) break;
  }
  return bytes;
};

/** The kernel's page size, from the auxiliary vector: 4 KB on x86, up to 64 KB elsewhere. */
export const readPageSize = (procRoot: string): number => {
  const AT_PAGESZ = 6n;
  try {
    const auxv = readFileSync(join(procRoot, "self/auxv"));
    for (let at = 0; at + 16 <= auxv.length; at += 16) {
      const [key, value] =
        endianness() === "LE"
          ? [auxv.readBigUInt64LE(at), auxv.readBigUInt64LE(at + 8)]
          : [auxv.readBigUInt64BE(at), auxv.readBigUInt64BE(at + 8)];
      if (key === AT_PAGESZ && value > 0n) return Number(value);
    }
  } catch {
    return 4096;
  }
  return 4096;
};
