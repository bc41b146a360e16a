import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, chmod, chown, lstat, mkdir, open, opendir, rename, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { errnoOf, unless } from "../../home/files.ts";
import { inside, openDirectory } from "./users-files.ts";

/**
 * Removes a job's directory while its user may still swap anything in it: a link could lead a walk by paths out of it.
 *
 *   root/NAME ─ taken back ─ closed (0700) ─► root/.NAME.removed/UUID ─► emptied, its directories first moved up beside it
 *
 * The directory is moved into one of ours, 0700, before we look at anything in it. Then every directory is opened,
 * never through a link; made ours alone, so that from then on nobody else can change what is in it; and emptied through
 * its handle. We do not descend into its subdirectories but move them up into ours, so that none is too deep, and
 * handles and memory stay few however large the tree is. After a crash the next removal continues with what is left.
 */

export interface Doomed {
  /** The job's directory. */
  readonly directory: string;
  /** The server's account. */
  readonly uid: number;
  /**
   * Makes everything below `directory` the server's; absent if nobody else's files are expected, or it can do without.
   */
  readonly take?: (() => Promise<void>) | undefined;
}

/** Not among Node's constants: a handle that refers to a file and needs no permission to read it. */
const O_PATH = 0o10000000;
/** How often the user may bring in what is not ours, and how often a directory may turn out not to be empty. */
const MOST_ROUNDS = 5;
/** Another host may hold a removed file open. */
const PAUSE_MS = 200;

/** Names are bytes: each byte is one character here. */
const at = (directory: FileHandle, name: string): Buffer => Buffer.from(inside(directory, name), "latin1");

async function* namesIn(directory: FileHandle): AsyncGenerator<string> {
  for await (const { name } of await opendir(inside(directory, "."), { encoding: "latin1" })) yield name;
}

/** One of our directories contained somebody else's, and must be taken over again. */
class NotOurs extends Error {
  override readonly name = "NotOurs";
  readonly holder: string;
  constructor(holder: string, cause: unknown) {
    super((cause as Error).message, { cause });
    this.holder = holder;
  }
}

/** A directory itself, closed to everybody else from now on; undefined for anything else. */
const hold = async (path: string | Buffer, uid: number): Promise<FileHandle | undefined> => {
  const handle = await open(path, O_PATH | constants.O_NOFOLLOW);
  try {
    const facts = await handle.stat();
    if (facts.isDirectory()) {
      const itself = `/proc/self/fd/${handle.fd}`;
      if (uid === 0 && facts.uid !== 0) await chown(itself, 0, 0);
      if (facts.uid !== uid || (facts.mode & 0o7777) !== 0o700)
        await chmod(itself, 0o700).catch((error: unknown) => {
          // what is not ours cannot be closed; on a file system without modes it need not be
          if (uid !== 0 && facts.uid !== uid) throw error;
        });
      return handle;
    }
  } catch (error) {
    await handle.close();
    throw error;
  }
  await handle.close();
  return undefined;
};

const close = async (path: string | Buffer, uid: number): Promise<void> => (await hold(path, uid))?.close();

/** Removes everything in a directory that is held open; subdirectories move up into the box. */
const clearOut = async (box: FileHandle, holder: string, held: FileHandle, uid: number): Promise<void> => {
  for await (const name of namesIn(held)) {
    try {
      await unlink(at(held, name));
      continue;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") continue;
      if (errnoOf(error) !== "EISDIR") throw error;
    }
    await close(at(held, name), uid).catch((error: unknown) => {
      throw ["EPERM", "EACCES"].includes(errnoOf(error)) ? new NotOurs(holder, error) : error;
    });
    await rename(at(held, name), at(box, randomUUID()));
  }
};

const removeFrom = async (box: FileHandle, name: string, uid: number): Promise<void> => {
  const held = await hold(at(box, name), uid);
  if (held === undefined) return unlink(at(box, name));
  try {
    for (let round = 1; ; round += 1) {
      await clearOut(box, name, held, uid);
      try {
        return await rmdir(at(box, name));
      } catch (error) {
        if (errnoOf(error) !== "ENOTEMPTY" || round === MOST_ROUNDS) throw error;
      }
      if (round > 1) await setTimeout(PAUSE_MS);
    }
  } finally {
    await held.close();
  }
};

/** What was moved up is in the box too: goes through it until nothing is left. */
const emptyBox = async (box: FileHandle, uid: number): Promise<void> => {
  for (let found = true; found;) {
    found = false;
    for await (const name of namesIn(box)) {
      found = true;
      await removeFrom(box, name, uid);
    }
  }
};

/**
 * Takes it back. chown may have skipped what its user swapped meanwhile; all that counts is whether the directory is
 * ours.
 */
const claim = async ({ directory, uid, take }: Doomed): Promise<void> => {
  try {
    await take?.();
  } catch (error) {
    if ((await lstat(directory)).uid !== uid) throw error;
  }
};

const moveInto = async (box: FileHandle, doomed: Doomed): Promise<void> => {
  const { directory, uid } = doomed;
  const facts = await unless(["ENOENT"], () => lstat(directory));
  if (facts === undefined) return;
  if (facts.uid !== uid) await claim(doomed);
  await close(directory, uid);
  await rename(directory, at(box, randomUUID()));
};

/** Resolves when nothing is left of it. One that is already gone is not an error. */
export const removeJobDirectory = async (doomed: Doomed): Promise<void> => {
  const { directory, uid, take } = doomed;
  const boxPath = join(dirname(directory), `.${basename(directory)}.removed`);
  const isThere = async (path: string): Promise<boolean> =>
    (await unless(["ENOENT", "ENOTDIR"], () => lstat(path))) !== undefined;
  if (!(await isThere(directory)) && !(await isThere(boxPath))) return;
  await unless(["EEXIST"], () => mkdir(boxPath, { mode: 0o700 }));
  const box = await openDirectory(boxPath);
  try {
    for (let round = 1; ; round += 1) {
      await moveInto(box, doomed);
      try {
        await emptyBox(box, uid);
        break;
      } catch (error) {
        if (!(error instanceof NotOurs) || take === undefined || round === MOST_ROUNDS) throw error;
        await rename(at(box, error.holder), directory);
        await claim(doomed);
      }
    }
  } finally {
    await box.close();
  }
  await rmdir(boxPath);
};
