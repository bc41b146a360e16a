import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * `mkdir -p`; true when it made the last one. Node's own `recursive` never returns where the system answers ENOENT
 * although the parent exists, as below /proc.
 */
export const makeDirectories = (path: string, mode = 0o777): boolean => {
  try {
    mkdirSync(path, { mode });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && statSync(path).isDirectory()) return false;
    const parent = dirname(path);
    if (code !== "ENOENT" || parent === path || existsSync(parent)) throw error;
    makeDirectories(parent, mode);
    return makeDirectories(path, mode);
  }
};
