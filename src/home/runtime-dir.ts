import { createHash, randomBytes } from "node:crypto";
import { lstat, mkdir, readdir, rmdir, stat, unlink } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { SlipwayError } from "../errors.ts";
import { isPrivate } from "../protocol/own-socket.ts";
import { unless } from "./files.ts";

/** The longest path of a unix socket; Node silently cuts off longer ones (rule 14). */
export const MAX_SOCKET_PATH = 107;
/** Room for a socket's name inside the directory. */
const NAME_ROOM = 24;

export interface RuntimeOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly uid?: number;
  /** Used when there is no XDG_RUNTIME_DIR. */
  readonly tmp?: string;
}

const fits = (dir: string): boolean => Buffer.byteLength(dir) + 1 + NAME_ROOM <= MAX_SOCKET_PATH;

const tryDirectory = async (dir: string, uid: number): Promise<boolean> => {
  if (!fits(dir)) return false;
  await unless(["EEXIST"], () => mkdir(dir, { mode: 0o700 }));
  return isPrivate(dir, uid);
};

const xdgBase = async (dir: string | undefined, uid: number): Promise<string | undefined> => {
  if (dir === undefined || !isAbsolute(dir) || dir.includes("\0")) return undefined;
  const about = await unless(["ENOENT", "ENOTDIR", "EACCES", "ELOOP", "ENAMETOOLONG"], () => stat(dir));
  return about?.isDirectory() === true && about.uid === uid ? dir : undefined;
};

/**
 * A short private directory for the sockets of a home: the same one at each start if possible. It never uses a
 * directory of that name that is not ours or is a symbolic link, and picks another name instead. The caller records it
 * in the endpoint file.
 */
export const runtimeDirectory = async (home: string, options: RuntimeOptions = {}): Promise<string> => {
  const { env = process.env, uid = process.getuid?.() ?? 0, tmp = "/tmp" } = options;
  const hash = createHash("sha256").update(home).digest("hex").slice(0, 12);
  const base = await xdgBase(env["XDG_RUNTIME_DIR"], uid);
  const candidates = base === undefined ? [] : [join(base, `slipway-${hash}`)];
  candidates.push(join(tmp, `slipway-${uid}-${hash}`));
  for (let n = 0; n < 5; n += 1) {
    candidates.push(join(tmp, `slipway-${uid}-${hash}-${randomBytes(4).toString("hex")}`));
  }
  let cause: unknown;
  for (const dir of candidates) {
    try {
      if (await tryDirectory(dir, uid)) return dir;
    } catch (error) {
      cause = error;
    }
  }
  const why = cause === undefined ? "none is private and short enough" : (cause as Error).message;
  throw new SlipwayError("home-unusable", { home, detail: `no directory for its sockets: ${why}` }, cause);
};

/** The path of a socket in it, checked to be short enough. */
export const socketPath = (dir: string, name: string): string => {
  const path = join(dir, name);
  const bytes = Buffer.byteLength(path);
  if (bytes <= MAX_SOCKET_PATH) return path;
  const detail = `the socket path ${path} has ${bytes} bytes, more than ${MAX_SOCKET_PATH}`;
  throw new SlipwayError("home-unusable", { home: dir, detail });
};

/** Removes the sockets and the directory; anything that is not a socket stays, and so does the directory then. */
export const removeRuntimeDirectory = async (dir: string): Promise<void> => {
  for (const name of (await unless(["ENOENT"], () => readdir(dir))) ?? []) {
    const path = join(dir, name);
    const about = await unless(["ENOENT"], () => lstat(path));
    if (about?.isSocket() === true) await unless(["ENOENT"], () => unlink(path));
  }
  await unless(["ENOENT", "ENOTEMPTY", "EEXIST"], () => rmdir(dir));
};
