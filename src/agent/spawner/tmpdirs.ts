import { lstatSync, mkdirSync, rmdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { tmpdirsOf } from "./protocol.ts";
import { removeTree } from "./remove-tree.ts";

/**
 * TMPDIRs of the Node spawner: a new one for each task, under one directory of this spawner (native/tmpdir.c says why;
 * that one also uses them again, which needs a proof that nothing of a task is left, and Node has none).
 */
export interface Tmpdirs {
  /** Makes one; throws what mkdir throws. */
  make(prefix: string): string;
  remove(path: string): void | Promise<void>;
  /** Removes the directory above them. */
  close(): void;
}

const IDLE_MS = 1000;

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** Nobody else could have made a directory of ours that others may not enter. */
const makeParent = (path: string): void => {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const found = codeOf(error) === "EEXIST" ? lstatSync(path) : undefined;
    if (found?.isDirectory() !== true || found.uid !== process.geteuid?.() || (found.mode & 0o777) !== 0o700)
      throw error;
  }
};

export const createTmpdirs = (): Tmpdirs => {
  /** How many are in each directory. */
  const used = new Map<string, number>();
  let made = 0;
  let timer: NodeJS.Timeout | undefined;

  const tidy = (): void => {
    for (const [parent, count] of used) {
      if (count > 0) continue;
      used.delete(parent);
      try {
        rmdirSync(parent);
      } catch {
        continue; // somebody has removed it, or put something there
      }
    }
  };
  const count = (parent: string, change: number): void => {
    used.set(parent, (used.get(parent) ?? 0) + change);
    clearTimeout(timer);
    timer = setTimeout(tidy, IDLE_MS).unref();
  };

  return {
    make: (prefix) => {
      const parent = tmpdirsOf(prefix, process.pid);
      const path = join(parent, String(made++));
      if (!used.has(parent)) makeParent(parent);
      used.set(parent, used.get(parent) ?? 0);
      try {
        mkdirSync(path, { mode: 0o700 });
      } catch (error) {
        // a task has removed the one above
        if (codeOf(error) !== "ENOENT") throw error;
        makeParent(parent);
        mkdirSync(path, { mode: 0o700 });
      }
      count(parent, 1);
      return path;
    },
    remove: async (path) => {
      await removeTree(path);
      count(dirname(path), -1);
    },
    close: () => {
      clearTimeout(timer);
      tidy();
    },
  };
};
