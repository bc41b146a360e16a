import { randomBytes } from "node:crypto";
import { open, rename, unlink } from "node:fs/promises";

const temporaryName = (path: string): string => `${path}.${process.pid}.${randomBytes(6).toString("hex")}.tmp`;

/** Writes a temporary file (0600) beside the given path; returns its name. */
export const writeTemporary = async (path: string, content: string | Uint8Array, sync: boolean): Promise<string> => {
  const temporary = temporaryName(path);
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(content);
    if (sync) await file.sync();
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  } finally {
    await file.close();
  }
  return temporary;
};

/** Replaces a file (0600). A reader sees the old content or the new one, never a part. */
export const replaceFile = async (path: string, content: string | Uint8Array, { sync = true } = {}): Promise<void> => {
  const temporary = await writeTemporary(path, content, sync);
  try {
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
};
