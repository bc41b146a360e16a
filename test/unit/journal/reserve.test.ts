import { mkdtemp, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openJournal, openReserve, reserveFile } from "../../../src/journal/index.ts";
import type { ReserveDisk } from "../../../src/journal/reserve.ts";
import { fakeDisk } from "./disk.ts";

const MB = 2 ** 20;
const never = (): boolean => false;

/** A disk of this many bytes with a reserve and other files. */
const smallDisk = (capacity: number) => {
  const disk: ReserveDisk & { capacity: number; others: number; reserve: number } = {
    capacity,
    others: 0,
    reserve: 0,
    size: () => Promise.resolve(disk.reserve),
    free: () => Promise.resolve(Math.max(0, disk.capacity - disk.others - disk.reserve)),
    grow: (size: number) => {
      if (disk.others + size > disk.capacity) return Promise.reject(new Error("no space"));
      disk.reserve = size;
      return Promise.resolve();
    },
    shrink: (size: number) => {
      disk.reserve = Math.min(disk.reserve, size);
      return Promise.resolve();
    },
  };
  return disk;
};

describe("the journal's reserve", () => {
  it("is 64 MB, or half of what a small disk has; it is lent piece by piece and taken again when there is room", async () => {
    const disk = smallDisk(1000 * MB);
    const log: string[] = [];
    const reserve = await openReserve({ disk, log: (text) => log.push(text) });
    await reserve.fill();
    expect([reserve.bytes, disk.reserve, reserve.lent]).toEqual([64 * MB, 64 * MB, false]);
    disk.others = 936 * MB;
    expect(await reserve.lend(1000)).toBe(true);
    expect([reserve.bytes, reserve.lent]).toEqual([60 * MB, true]);
    expect(await reserve.lend(10 * MB)).toBe(true);
    expect(reserve.bytes).toBe(40 * MB);
    // others have used all of that: there is nothing to take back
    disk.others = 960 * MB;
    await reserve.fill();
    expect(reserve.bytes).toBe(40 * MB);
    for (let i = 0; i < 10; i += 1) expect(await reserve.lend(1)).toBe(true);
    expect(await reserve.lend(1)).toBe(false);
    disk.others = 0;
    await reserve.fill();
    expect([reserve.bytes, reserve.lent]).toEqual([64 * MB, false]);
    expect(log).toEqual([expect.stringContaining("the disk is full"), expect.stringContaining("room again")]);
    await reserve.close();

    const small = smallDisk(24 * MB);
    const half = await openReserve({ disk: small });
    await half.fill();
    expect(half.bytes).toBe(12 * MB);
    await half.close();
  });

  it("leaves a disk alone whose free room cannot be had, a quota for one", async () => {
    const disk = { ...smallDisk(1000 * MB), grow: () => Promise.reject(new Error("Disk quota exceeded")) };
    const reserve = await openReserve({ disk });
    await reserve.fill();
    expect([reserve.bytes, reserve.lent]).toEqual([0, false]);
    expect(await reserve.lend(1)).toBe(false);
    await reserve.close();
  });

  it("lets the journal go on when the disk is full, and only when it is used up is the journal full", async () => {
    for (const code of ["ENOSPC", "EDQUOT"]) {
      const disk = fakeDisk();
      let pieces = 3;
      let room = true;
      const reserve = {
        lend: () => {
          if (pieces === 0) return Promise.resolve(false);
          pieces -= 1;
          room = true;
          return Promise.resolve(true);
        },
      };
      const journal = await openJournal(
        { dir: "/j", epoch: 1, io: disk.io, retry: { full: 5 }, reserve },
        () => undefined,
      );
      const states: string[] = [];
      journal.onState((state) => states.push(state));
      disk.fault = (op) => (op === "write" && !room ? code : undefined);
      for (let i = 0; i < 3; i += 1) {
        room = false;
        journal.append(1, Buffer.from("x"));
        await journal.whenDurable(journal.appended);
      }
      expect([states, pieces]).toEqual([[], 0]);
      room = false;
      const full = new Promise<void>((resolve) => journal.onState((state) => state === "full" && resolve()));
      journal.append(1, Buffer.from("y"));
      await full;
      room = true;
      journal.retryNow();
      await journal.whenDurable(journal.appended);
      expect(states).toEqual(["full", "ok"]);
      await journal.close();
    }
  });
});

describe("the reserve's file", () => {
  let directory: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "slipway-reserve-"));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  it("takes the room that it claims and gives it back", async () => {
    const path = join(directory, "reserve");
    const disk = reserveFile(path);
    expect(await disk.size()).toBe(0);
    await disk.grow(3 * MB, never);
    const { size, blocks, mode } = await stat(path);
    expect([size, mode & 0o777]).toEqual([3 * MB, 0o600]);
    expect(blocks * 512).toBeGreaterThanOrEqual(3 * MB);
    await disk.grow(5 * MB, never);
    await disk.shrink(MB);
    expect(await disk.size()).toBe(MB);
    expect(await disk.free()).toBeGreaterThan(0);
  });

  it("is begun anew when it was copied and takes nothing", async () => {
    const path = join(directory, "reserve");
    await writeFile(path, "");
    await truncate(path, 8 * MB);
    expect(await reserveFile(path).size()).toBe(0);
    expect((await stat(path)).size).toBe(0);
  });

  it("works without the system's command", async () => {
    const { PATH } = process.env;
    process.env["PATH"] = directory;
    try {
      const path = join(directory, "reserve");
      await reserveFile(path).grow(3 * MB + 5, never);
      const { size, blocks } = await stat(path);
      expect(size).toBe(3 * MB + 5);
      expect(blocks * 512).toBeGreaterThanOrEqual(3 * MB);
    } finally {
      process.env["PATH"] = PATH;
    }
  });
});
