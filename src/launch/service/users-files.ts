import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname } from "node:path";

/**
 * The only way in which the server reads files in a job's directory. The job's user may put anything there, at any
 * moment: links to files that only the server may read, pipes that never end, devices. So nothing is opened by its
 * path. First the directory itself is opened (its name is in job_storage_root, where users cannot write), then the file
 * through it, never through a link and never blocking; and what was opened is checked before a byte is read: it must be
 * a plain file that belongs to the directory's owner and has only this one name. Anything else counts as missing.
 */

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** A name in a directory that is held open: it stays in that directory, whatever happens to the directory's path. */
export const inside = (directory: FileHandle, name: string): string => `/proc/self/fd/${directory.fd}/${name}`;

/** A directory itself, not the target of a link with its name. */
export const openDirectory = (path: string): Promise<FileHandle> => open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

export interface UsersFile {
  /** As of when it was opened. */
  readonly size: number;
  /** Its bytes from one offset to another, or to its end if that comes first. */
  bytes(from: number, to: number): AsyncGenerator<Buffer>;
  close(): Promise<void>;
}

const CHUNK_BYTES = 64 * 1024;

async function* chunksOf(file: FileHandle, from: number, to: number): AsyncGenerator<Buffer> {
  for (let at = from; at < to;) {
    const wanted = Math.min(CHUNK_BYTES, to - at);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at);
    // it has been truncated since
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

const openIn = async (directory: FileHandle, name: string): Promise<UsersFile | undefined> => {
  const { uid } = await directory.stat();
  const file = await open(inside(directory, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const facts = await file.stat();
    if (facts.isFile() && facts.uid === uid && facts.nlink === 1)
      return { size: facts.size, bytes: (from, to) => chunksOf(file, from, to), close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return undefined;
};

/** A file in a job's directory; undefined if it is missing, not ours to read, or not what it should be. */
export const openUsersFile = async (path: string): Promise<UsersFile | undefined> => {
  let directory: FileHandle | undefined;
  try {
    directory = await openDirectory(dirname(path));
    return await openIn(directory, basename(path));
  } catch {
    return undefined;
  } finally {
    await directory?.close();
  }
};

const NOTE_BYTES = 200;

/** A small file that a job left; reads no more than a note can hold. */
export const readNote = async (path: string): Promise<string | undefined> => {
  const file = await openUsersFile(path);
  if (file === undefined) return undefined;
  try {
    let text = "";
    for await (const chunk of file.bytes(0, Math.min(file.size, NOTE_BYTES))) text += chunk.toString("latin1");
    return text.trim();
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
};
