import { spawn } from "node:child_process";
import { rmdirSync } from "node:fs";
import { rm } from "node:fs/promises";

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** For trees with unreadable directories, or deeper than a path can be long. Neither tool follows links it meets. */
const removeHard = (path: string): Promise<void> =>
  new Promise((resolve) => {
    const script = 'chmod -R u+rwx -- "$1"; exec rm -rf -- "$1"';
    const child = spawn("/bin/sh", ["-c", script, "sh", path], { stdio: "ignore" });
    child.on("error", () => resolve());
    child.on("exit", () => resolve());
  });

/**
 * Removes a directory with everything in it, without following links. What cannot be removed stays: there is nobody to
 * tell.
 */
export const removeTree = (path: string): void | Promise<void> => {
  try {
    rmdirSync(path); // the usual case: it is empty
    return undefined;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    return rm(path, { recursive: true, force: true }).catch(() => removeHard(path));
  }
};
