import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findCommand } from "../../find-program.ts";
import { parseCpuList } from "../cpu-list.ts";

let taskset: string | null | undefined;
let allowed: ReadonlySet<number> | undefined;

/** The words that bind a command to cores; none where that is impossible, without taskset or without these cores. */
export const pinPrefix = (cpus: readonly number[]): string[] => {
  if (taskset === undefined) {
    const found = findCommand("taskset", `${process.env["PATH"] ?? ""}:/usr/bin:/bin`, "/");
    taskset = "file" in found ? found.file : null;
    const status = readFileSync(join("/proc/self/status"), "latin1");
    allowed = new Set(parseCpuList(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? ""));
  }
  const usable = cpus.filter((cpu) => allowed?.has(cpu));
  return taskset === null || usable.length === 0 ? [] : [taskset, "-c", usable.join(",")];
};
