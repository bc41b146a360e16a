import { constants, fdatasync, writevSync } from "node:fs";
import { type FileHandle, copyFile, mkdir, open, readdir, rename, stat, unlink } from "node:fs/promises";

/**
 * The journal's only way to the file system, so that tests can make any call fail at any moment. The contract: `writev`
 * may write less than asked; `datasync` returns only when what was written is on the medium; an error means nothing
 * beyond what the errno says.
 */
export interface IoFile {
  read(buffer: Uint8Array, offset: number, length: number, position: number): Promise<number>;
  writev(buffers: readonly Uint8Array[], position: number): Promise<number>;
  datasync(): Promise<void>;
  truncate(length: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

export interface JournalIo {
  /** `wx`: create, fail if it exists. */
  open(path: string, flags: "r" | "r+" | "wx" | "w"): Promise<IoFile>;
  readdir(dir: string): Promise<string[]>;
  mkdir(dir: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  copy(from: string, to: string): Promise<void>;
  size(path: string): Promise<number>;
  syncDir(dir: string): Promise<void>;
}

/**
 * This much goes into the page cache in microseconds, faster than handing it to another thread; and it is only written
 * right after the file system has answered a sync, or a file was made. More may have to wait for the disk.
 */
const AT_ONCE = 64 * 1024;

const writeSome = async (handle: FileHandle, buffers: readonly Uint8Array[], position: number): Promise<number> => {
  let bytes = 0;
  for (const buffer of buffers) bytes += buffer.length;
  if (bytes <= AT_ONCE) return writevSync(handle.fd, buffers, position);
  return (await handle.writev([...buffers], position)).bytesWritten;
};

/** With a callback: the promises of a handle's own cost a good part of what a quick disk takes. */
const datasync = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => {
    fdatasync(fd, (error) => (error === null ? resolve() : reject(error)));
  });

const fileOf = (handle: FileHandle): IoFile => ({
  read: async (buffer, offset, length, position) => (await handle.read(buffer, offset, length, position)).bytesRead,
  writev: (buffers, position) => writeSome(handle, buffers, position),
  datasync: () => datasync(handle.fd),
  truncate: (length) => handle.truncate(length),
  size: async () => (await handle.stat()).size,
  close: () => handle.close(),
});

/** Errors that some file systems return for an fsync of a directory that they cannot or need not do. */
const DIRECTORY_SYNC_UNSUPPORTED = new Set(["EINVAL", "ENOTSUP", "EISDIR", "EPERM", "EACCES", "EBADF"]);

export const nodeIo: JournalIo = {
  open: async (path, flags) => fileOf(await open(path, flags, 0o600)),
  readdir: (dir) => readdir(dir),
  mkdir: async (dir) => {
    await mkdir(dir, { recursive: true, mode: 0o700 });
  },
  rename: (from, to) => rename(from, to),
  unlink: (path) => unlink(path),
  copy: (from, to) => copyFile(from, to, constants.COPYFILE_EXCL),
  size: async (path) => (await stat(path)).size,
  syncDir: async (dir) => {
    const handle = await open(dir, "r");
    try {
      await handle.sync();
    } catch (error) {
      if (!DIRECTORY_SYNC_UNSUPPORTED.has(errnoOf(error))) throw error;
    } finally {
      await handle.close();
    }
  },
};

export const errnoOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "";
};

/** No space: the disk (or the user's quota) is full. Waiting helps. */
export const isFull = (error: unknown): boolean => {
  const code = errnoOf(error);
  return code === "ENOSPC" || code === "EDQUOT";
};

/** One writev at a time stays far below IOV_MAX (1024) and the 2 GB that Linux writes at once. */
const BUFFERS_PER_WRITE = 256;

/** Writes everything at `position`, however short the single writes are. Throws the error of the first failing write. */
export const writeAll = async (file: IoFile, buffers: readonly Uint8Array[], position: number): Promise<number> => {
  let queue = buffers.filter((buffer) => buffer.length > 0);
  let at = position;
  while (queue.length > 0) {
    let written = await file.writev(queue.slice(0, BUFFERS_PER_WRITE), at);
    if (written === 0) throw Object.assign(new Error("write returned 0"), { code: "EIO" });
    at += written;
    let done = 0;
    while (done < queue.length && written >= queue[done]!.length) written -= queue[done++]!.length;
    queue = queue.slice(done);
    if (written > 0) queue[0] = queue[0]!.subarray(written);
  }
  return at - position;
};

/** Reads until `length` bytes are there or the file ends; returns what there is. */
export const readAt = async (file: IoFile, position: number, length: number): Promise<Buffer> => {
  const buffer = Buffer.allocUnsafeSlow(length);
  let have = 0;
  while (have < length) {
    const got = await file.read(buffer, have, length - have, position + have);
    if (got === 0) break;
    have += got;
  }
  return have === length ? buffer : buffer.subarray(0, have);
};
