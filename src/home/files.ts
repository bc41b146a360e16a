import { link, mkdir, open, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { writeTemporary } from "../replace-file.ts";

export const errnoOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "";
};

/** Runs `action`; returns undefined for the given errnos. */
export const unless = async <T>(codes: readonly string[], action: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await action();
  } catch (error) {
    if (codes.includes(errnoOf(error))) return undefined;
    throw error;
  }
};

/** Makes a directory (0700) and those above it. Node's own recursive mkdir never returns for a path such as /proc/x. */
export const makeDirectory = async (path: string): Promise<void> => {
  const make = (): Promise<void | undefined> => unless(["EEXIST"], () => mkdir(path, { mode: 0o700 }));
  try {
    await make();
  } catch (error) {
    const parent = dirname(path);
    if (errnoOf(error) !== "ENOENT" || parent === path) throw error;
    if ((await unless(["ENOENT"], () => stat(parent))) !== undefined) throw error;
    await makeDirectory(parent);
    await make();
  }
};

/** File systems without hard links answer one of these. */
const NO_LINKS = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/** Creates a file (0600) with its whole content; returns false if one exists. Of two callers, one wins. */
export const createFile = async (path: string, content: string): Promise<boolean> => {
  const temporary = await writeTemporary(path, content, true);
  try {
    await link(temporary, path);
    return true;
  } catch (error) {
    const code = errnoOf(error);
    // ENOENT: a server that tidied up removed our temporary file; the caller looks again.
    if (code === "EEXIST" || code === "ENOENT") return false;
    if (!NO_LINKS.has(code)) throw error;
  } finally {
    await unless(["ENOENT"], () => unlink(temporary));
  }
  const file = await unless(["EEXIST"], () => open(path, "wx", 0o600));
  if (file === undefined) return false;
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  return true;
};
