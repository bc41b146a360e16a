import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { parseCpuList } from "../cpu-list.ts";

/** Where execvp would find a command, or the code of the error it would give. */
export const findCommand = (name: string, path: string, cwd: string): { file: string } | { code: string } => {
  if (name === "") return { code: "ENOENT" };
  let code = "ENOENT";
  for (const directory of name.includes("/") ? [""] : path.split(delimiter)) {
    const file = name.includes("/") ? resolve(cwd, name) : resolve(cwd, directory, name);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return { file };
      code = "EACCES";
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EACCES") code = "EACCES";
    }
  }
  return { code };
};

let taskset: string | null | undefined;
let allowed: ReadonlySet<number> | undefined;

/** The words that bind a command to cores, none where that is impossible: no taskset here, or none of these cores. */
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
