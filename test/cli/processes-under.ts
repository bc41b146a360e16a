import { readFile, readdir, readlink } from "node:fs/promises";

export interface FoundProcess {
  readonly pid: number;
  readonly command: string;
}

const read = (path: string): Promise<string> => readFile(path, "latin1").catch(() => "");

/** Fields after the command's name in /proc/PID/stat; a zombie (`Z`) has ended and only waits to be collected. */
const hasEnded = (stat: string): boolean => stat === "" || /^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));

/**
 * Every living process on this machine that has a directory in its arguments or environment, or as its working
 * directory. This process and its parent shells are not included unless they were started there.
 */
export const processesUnder = async (directory: string): Promise<FoundProcess[]> => {
  const found: FoundProcess[] = [];
  for (const name of await readdir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const [command, environment, cwd, stat] = await Promise.all([
      read(`/proc/${name}/cmdline`),
      read(`/proc/${name}/environ`),
      readlink(`/proc/${name}/cwd`).catch(() => ""),
      read(`/proc/${name}/stat`),
    ]);
    if (hasEnded(stat)) continue;
    if (command.includes(directory) || environment.includes(directory) || cwd.startsWith(directory))
      found.push({ pid, command: command.split("\0").join(" ").trim().slice(0, 300) });
  }
  return found;
};
