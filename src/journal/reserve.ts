import { spawn } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { open, stat, statfs, truncate } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "./io.ts";

/**
 * Room that is kept for the journal: a file that takes it, and gives it back piece by piece when the disk is full, so
 * that what others write there does not stop the server. Taken again when there is room.
 *
 *   whole ──(the journal finds no room)──► lent ──(room again)──► whole
 */
export interface Reserve {
  /** Bytes at hand. */
  readonly bytes: number;
  /** Some of it was given to the journal and could not be taken again yet. */
  readonly lent: boolean;
  /** Gives room back for a write of so many bytes. False when nothing is left to give. */
  lend(bytes: number): Promise<boolean>;
  /** Takes what is missing, if that leaves others as much. */
  fill(): Promise<void>;
  close(): Promise<void>;
}

/** The file, apart from the rules above. */
export interface ReserveDisk {
  /** Its length now; 0 when there is none, or when it does not take the room that it claims. */
  size(): Promise<number>;
  /** Bytes that this user could write. */
  free(): Promise<number>;
  /** Makes it so long, and takes the room. Throws when there is none, or when `isOver` says to leave it. */
  grow(size: number, isOver: () => boolean): Promise<void>;
  shrink(size: number): Promise<void>;
}

export const RESERVE_BYTES = 64 * 1024 * 1024;
const MB = 1024 * 1024;
/** The least that is lent at once: agents that met a full disk wait for several times as much. */
const STEP = 4 * MB;
const LOOK_MS = 10_000;
/** After room that was said to be there was not (a quota, for one), at most. */
const LONGEST_WAIT_MS = 3_600_000;

export interface ReserveOptions {
  readonly disk: ReserveDisk;
  readonly target?: number;
  readonly log?: (text: string) => void;
}

export const openReserve = async ({ disk, target = RESERVE_BYTES, log }: ReserveOptions): Promise<Reserve> => {
  let bytes = await disk.size();
  /** What there was before anything was lent. */
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
    if (before === 0) log?.("the disk is full: the journal goes on with the room that was reserved for it");
    before = Math.max(before, bytes);
    try {
      await disk.shrink(left);
      bytes = left;
    } catch {
      // somebody removed it: then its room is free already
      bytes = await disk.size().catch(() => 0);
    }
    return true;
  };

  const fill = async (): Promise<void> => {
    if (closed || bytes >= target || performance.now() < notBefore) return;
    const free = await disk.free();
    // half of what there is, in whole megabytes: on a small disk others need room too
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
    log?.("there is room again: the journal's reserve is whole");
  };

  const timer = setInterval(() => void inTurn(fill).catch(() => undefined), LOOK_MS);
  timer.unref();

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
      clearInterval(timer);
      await last;
    },
  };
};

/** Whether the system's own command took the room. False: it cannot do that here. */
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

/** Room of a real file system. */
export const reserveFile = (path: string): ReserveDisk => ({
  size: async () => {
    try {
      const { size, blocks } = await stat(path);
      if (blocks * 512 >= 0.9 * size) return size;
      // copied from elsewhere, for one: it takes nothing
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
      // bytes that no file system can make smaller
      const block = Buffer.allocUnsafe(MB);
      for (let at = (await file.stat()).size; at < size; at += MB) {
        // whoever stops the server does not wait for a slow disk
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
