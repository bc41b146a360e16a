import { accessSync, constants, statSync } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";

/**
 * Finds programs as shells do: the first file of that name on the PATH that may be executed. A file in a directory that
 * may not be entered does not count, and neither does a directory.
 */

/** Where a program is: in one directory, or on the PATH, where only absolute elements count; undefined: nowhere. */
export const findProgram = async (
  name: string,
  directory?: string,
  path = process.env["PATH"] ?? "",
): Promise<string | undefined> => {
  const directories =
    directory === undefined ? path.split(delimiter).filter((part) => part.startsWith("/")) : [directory];
  for (const each of directories) {
    const file = join(each, name);
    try {
      await access(file, constants.X_OK);
      if ((await stat(file)).isFile()) return file;
    } catch {
      // the next directory may have it
    }
  }
  return undefined;
};

const isFile = (path: string): boolean => {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
};

/** Why execve would refuse a path; undefined: it would not. */
const faultOf = (path: string): "ENOENT" | "EACCES" | undefined => {
  try {
    accessSync(path, constants.X_OK);
    return isFile(path) ? undefined : "EACCES";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? "EACCES" : "ENOENT";
  }
};

/**
 * The command that a process with this PATH and working directory would execute: its file; EACCES if files of that name
 * were found but none may be executed; otherwise ENOENT. A name with a slash is not searched.
 */
export const findCommand = (
  name: string,
  path: string,
  cwd: string,
): { readonly file: string } | { readonly code: "ENOENT" | "EACCES" } => {
  if (name === "") return { code: "ENOENT" };
  const files = name.includes("/")
    ? [resolve(cwd, name)]
    : path
        .split(delimiter)
        .map((directory) => resolve(cwd, directory, name))
        .filter(isFile);
  const faults = files.map(faultOf);
  const at = faults.indexOf(undefined);
  if (at >= 0) return { file: files[at]! };
  return { code: faults.includes("EACCES") ? "EACCES" : "ENOENT" };
};
