import { spawn } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { open, stat, statfs, truncate } from "node:fs/promises";
import { dirname } from "node:path";
import { repeatTimer } from "../long-timer.ts";
import { errnoOf } from "./io.ts";

/**
 * Space kept for the journal: a file occupies it, and gives it back piece by piece when the disk is full, so that what
 * others write there does not stop the server. It grows again when there is space.
 *
 *   whole ──(the journal finds no space)──► lent ──(space again)──► whole
 */
export interface Reserve {
  /** Bytes it holds now. */
  readonly bytes: number;
  /** The journal got some of it, and it could not be taken again yet. */
  readonly lent: boolean;
  /** Frees space for a write of this many bytes. False when nothing is left to give. */
  lend(bytes: number): Promise<boolean>;
  /** Takes what is missing, if that leaves as much for others. */
  fill(): Promise<void>;
  close(): Promise<void>;
}

/** The file itself, apart from the rules above. */
export interface ReserveDisk {
  /** Its length now; 0 when it does not exist, or does not occupy the space that it claims. */
  size(): Promise<number>;
  /** Bytes that this user could write. */
  free(): Promise<number>;
  /** Grows it to this length, occupying the space. Throws when there is none, or when `isOver` says to stop. */
  grow(size: number, isOver: () => boolean): Promise<void>;
  shrink(size: number): Promise<void>;
}

export const RESERVE_BYTES = 64 * 1024 * 1024;
const MB = 1024 * 1024;
/** The least that is lent at once: agents that met a full disk wait until several times as much is free. */
const STEP = 4 * MB;
const LOOK_MS = 10_000;
/** The longest pause after reported space turned out not to exist (because of a quota, for example). */
const LONGEST_WAIT_MS = 3_600_000;

export interface ReserveOptions {
  readonly disk: ReserveDisk;
  readonly target?: number;
  readonly log?: (text: string) => void;
}

export const openReserve = async ({ disk, target = RESERVE_BYTES, log }: ReserveOptions): Promise<Reserve> => {
  let bytes = await disk.size();
  /** Its size before anything was lent. */
  let before = 0;
  let wait = LOOK_MS;
  let notBefore = 0;
  let closed = false;
  let last: Promise<unknown> = Promise.resolve();

  /** One at a time: growing and lending at once would undo each other. */
  const inTurn = <T>(action: () => Promise<T>): Promise<T> => {
    const turn = last.then(action);
    last = turn.catch(() => undefined);
    return turn;
  };

  const lend = async (wanted: number): Promise<boolean> => {
    if (bytes === 0) return false;
    const left = Math.max(0, bytes - Math.max(STEP, 2 * wanted));
    if (before === 0) log?.("the disk is full: the journal continues in the space reserved for it");
    before = Math.max(before, bytes);
    try {
      await disk.shrink(left);
      bytes = left;
    } catch {
      // someone removed it: then its space is free already
      bytes = await disk.size().catch(() => 0);
    }
    return true;
  };

  const fill = async (): Promise<void> => {
    if (closed || bytes >= target || performance.now() < notBefore) return;
    const free = await disk.free();
    // half of what there is, in whole megabytes: on a small disk others need space too
    const wanted = Math.min(target, Math.floor((free + bytes) / 2 / MB) * MB);
    if (wanted > bytes) {
      try {
        await disk.grow(wanted, () => closed);
        bytes = wanted;
        wait = LOOK_MS;
      } catch {
        await disk.shrink(bytes).catch(() => undefined);
        wait = Math.min(2 * wait, LONGEST_WAIT_MS);
        notBefore = performance.now() + wait;
        return;
      }
    }
    if (before === 0 || (bytes < before && bytes < target)) return;
    before = 0;
    log?.("there is room again: the journal's reserve is full again");
  };

  const timer = repeatTimer(LOOK_MS, () => void inTurn(fill).catch(() => undefined));

  return {
    get bytes() {
      return bytes;
    },
    get lent() {
      return before > 0;
    },
    lend: (wanted) => inTurn(() => lend(wanted)),
    fill: () => inTurn(fill).catch(() => undefined),
    close: async () => {
      closed = true;
      timer.stop();
      await last;
    },
  };
};

/** Whether the system's own command allocated the space. False: it cannot do that here. */
const allocate = (path: string, size: number): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const child = spawn("fallocate", ["-l", String(size), path], {
      env: { PATH: process.env["PATH"], LC_ALL: "C" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-1000);
    });
    child.on("error", () => resolve(false));
    child.on("close", (status) => {
      if (status === 0) resolve(true);
      else if (/no space|quota/i.test(said)) reject(new Error(said));
      else resolve(false);
    });
  });

/** A reserve on a real file system. */
export const reserveFile = (path: string): ReserveDisk => ({
  size: async () => {
    try {
      const { size, blocks } = await stat(path);
      if (blocks * 512 >= 0.9 * size) return size;
      // it was copied from elsewhere, for example, and occupies nothing
      await truncate(path, 0);
      return 0;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return 0;
      throw error;
    }
  },
  free: async () => {
    const { bavail, bsize } = await statfs(dirname(path));
    return bavail * bsize;
  },
  grow: async (size, isOver) => {
    const file = await open(path, "a", 0o600);
    try {
      if (await allocate(path, size)) return;
      // random bytes, which no file system can compress
      const block = Buffer.allocUnsafe(MB);
      for (let at = (await file.stat()).size; at < size; at += MB) {
        // stopping the server must not wait for a slow disk
        if (isOver()) throw new Error("left");
        randomFillSync(block);
        await file.write(block, 0, Math.min(MB, size - at));
      }
      await file.datasync();
    } finally {
      await file.close();
    }
  },
  shrink: (size) => truncate(path, size),
});
