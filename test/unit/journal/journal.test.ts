import {
  appendFile,
  copyFile,
  mkdtemp,
  open,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SlipwayError } from "../../../src/errors.ts";
import {
  type Journal,
  type JournalOptions,
  inspectJournal,
  openJournal,
  readJournal,
  repairJournal,
  verifyJournal,
  writeSnapshot,
} from "../../../src/journal/index.ts";
import { FORMAT_VERSION } from "../../../src/journal/format.ts";
import { fakeDisk } from "./disk.ts";
import { refusalOf } from "../../refusal.ts";

let root: string;
let dir: string;
let lives: number;
const opened: Journal[] = [];
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slipway-journal-"));
  dir = root;
  lives = 0;
});
afterEach(async () => {
  for (const journal of opened.splice(0)) await journal.close().catch(() => undefined);
  await rm(root, { recursive: true, force: true });
});

const text = (value: string): Buffer => Buffer.from(value);

interface Life {
  journal: Journal;
  seen: string[];
}

/** Opens with the next epoch; `seen` is what was replayed. A file holds nothing but what was written to it. */
const start = async (options: Partial<JournalOptions> = {}): Promise<Life> => {
  lives = options.epoch ?? lives + 1;
  const seen: string[] = [];
  const journal = await openJournal({ dir, aheadBytes: 0, ...options, epoch: lives }, (type, payload, lsn) => {
    seen.push(payload.toString());
    if (type === 1) expect(lsn).toBe(Number(payload.toString().split(":")[0]));
  });
  opened.push(journal);
  return { journal, seen };
};

const write = async (journal: Journal, count: number, size = 20): Promise<string[]> => {
  const written: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const value = `${journal.appended + 1}:${"v".repeat(size)}`;
    written.push(value);
    journal.append(1, text(value));
  }
  await journal.whenDurable(journal.appended);
  return written;
};

const files = async (kind = "log"): Promise<string[]> =>
  (await readdir(dir)).filter((name) => name.endsWith(`.${kind}`)).sort();
const newest = async (): Promise<string> => join(dir, (await files()).at(-1)!);

const flip = async (path: string, offset: number): Promise<void> => {
  const file = await open(path, "r+");
  try {
    const byte = Buffer.alloc(1);
    await file.read(byte, 0, 1, offset);
    byte[0]! ^= 0x40;
    await file.write(byte, 0, 1, offset);
  } finally {
    await file.close();
  }
};

/** Where each of the caller's records is in a segment. */
const layout = (bytes: Buffer): { value: string; from: number; to: number }[] => {
  const found: { value: string; from: number; to: number }[] = [];
  for (let at = 40; at + 11 <= bytes.length;) {
    const to = at + 11 + bytes.readUInt32LE(at);
    if (bytes[at + 10]! < 0xf0) found.push({ value: bytes.toString("utf8", at + 11, to), from: at, to });
    at = to;
  }
  return found;
};

describe("journal", () => {
  it("replays what was appended, in order, over segments, lives and parts of payloads", async () => {
    const first = await start({ segmentBytes: 500 });
    const written = await write(first.journal, 10);
    for (let n = 0; n < 5; n += 1) written.push(...(await write(first.journal, 10)));
    first.journal.append(1, [text(`${first.journal.appended + 1}:`), text("a"), Buffer.alloc(0), text("b")]);
    written.push(`${first.journal.appended}:ab`);
    await first.journal.close();
    expect((await files()).length).toBeGreaterThan(3);
    const second = await start({ segmentBytes: 500 });
    expect(second.seen).toEqual(written);
    expect(second.journal.durable).toBe(written.length);
    written.push(...(await write(second.journal, 3)));
    await second.journal.close();
    expect((await start()).seen).toEqual(written);
  });

  it("shares one fsync among what one turn of the loop appends", async () => {
    const disk = fakeDisk();
    const journal = await openJournal({ dir: "/j", epoch: 1, io: disk.io }, () => undefined);
    const commits: number[] = [];
    journal.onDurable((lsn) => commits.push(lsn));
    for (let n = 0; n < 1000; n += 1) journal.append(1, text("x"));
    expect(journal.durable).toBe(0);
    await journal.whenDurable(1000);
    expect(commits).toEqual([1000]);
    await journal.close();
  });

  it("lets a listener add to a commit before it begins, whenever that is", async () => {
    const disk = fakeDisk();
    const journal = await openJournal({ dir: "/j", epoch: 1, io: disk.io }, () => undefined);
    const commits: number[] = [];
    let due = 0;
    journal.onDurable((lsn) => commits.push(lsn));
    journal.beforeCommit(() => {
      for (; due > 0; due -= 1) journal.append(2, text("answer"));
    });
    journal.append(1, text("question"));
    due = 1;
    await journal.whenDurable(2);
    expect(commits).toEqual([2]);
    // and while another commit is under way
    journal.append(1, text("first"));
    await new Promise((resolve) => setImmediate(resolve));
    journal.append(1, text("second"));
    due = 2;
    await journal.whenDurable(6);
    expect(commits).toEqual([2, 3, 6]);
    await journal.close();
  });

  it("takes records of 0 bytes and of several MB, and refuses its own types and closed journals", async () => {
    const { journal } = await start();
    journal.append(7, Buffer.alloc(0));
    const big = Buffer.alloc(5_000_000, "z");
    journal.append(7, big);
    big.fill(0);
    journal.append(7, text("after"));
    expect(() => journal.append(0xf0, text("x"))).toThrow(RangeError);
    expect(() => journal.append(-1, text("x"))).toThrow(RangeError);
    expect(() => journal.append(1, { length: 300_000_000 } as unknown as Uint8Array[])).toThrow();
    await journal.close();
    expect(() => journal.append(7, text("x"))).toThrow(/closed/);
    await expect(journal.whenDurable(99)).rejects.toThrow(/closed/);
    const { seen } = await start();
    expect(seen.map((value) => value.length)).toEqual([0, 5_000_000, 5]);
    expect(seen[1]).toBe("z".repeat(5_000_000));
  });

  it("rule 2: a file cut at any byte behind its first record loads a prefix, with a warning if a record was cut", async () => {
    const { journal } = await start();
    const written = await write(journal, 3);
    written.push(...(await write(journal, 40, 7)));
    const path = await newest();
    const whole = await readFile(path);
    const { segments } = await inspectJournal(dir);
    const begin = whole.length - 43 * 11 - written.join("").length - 19 * 2;
    expect(segments[0]!.lastLsn).toBe(43);
    for (let cut = begin; cut <= whole.length; cut += 1) {
      await writeFile(path, whole.subarray(0, cut));
      const seen: string[] = [];
      const { warnings } = await readJournal(dir, (_type, payload) => seen.push(payload.toString()));
      expect(seen).toEqual(written.slice(0, seen.length));
      if (cut === whole.length) expect(seen.length).toBe(43);
      const cutRecord = warnings.some((warning) => warning.includes("torn tail"));
      if (seen.length === 0 && cut > begin) expect(cutRecord).toBe(true);
    }
    await truncate(path, whole.length - 19 - 5);
    const { journal: next, seen } = await start();
    expect(seen).toEqual(written.slice(0, 42));
    expect(next.warnings.join()).toMatch(/00000001-00000001\.log: cut a torn tail of \d+ bytes/);
    await next.close();
    await journal.close();
    expect((await start()).seen).toEqual(written.slice(0, 42));
  });

  it("rule 2: a byte flipped anywhere before the end is refused, naming segment and offset, and nothing is changed", async () => {
    const { journal } = await start({ segmentBytes: 400 });
    for (let n = 0; n < 8; n += 1) await write(journal, 4);
    const names = await files();
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) {
      const path = join(dir, name);
      const { size } = await stat(path);
      for (let offset = 0; offset < size - 19; offset += 3) {
        await flip(path, offset);
        const before = await readdir(dir);
        const error = await refusalOf(openJournal({ dir, epoch: 99 }, () => undefined));
        expect(error.code).toBe("journal-damaged");
        expect(error.facts).toMatchObject({ segment: name });
        expect(error.facts["offset"]).toBeLessThanOrEqual(offset);
        expect(await readdir(dir)).toEqual(before);
        await flip(path, offset);
      }
    }
    await journal.close();
  });

  it("rule 2: pages of the last write that arrived without their predecessors are a torn tail, not damage", async () => {
    const { journal } = await start();
    const written = await write(journal, 5);
    const path = await newest();
    const { size } = await stat(path);
    await write(journal, 5);
    const whole = await readFile(path);
    // Without the marker that follows the second batch, as when the machine died before its fsync returned.
    const torn = Buffer.from(whole.subarray(0, whole.length - 19));
    torn.fill(0, size, size + 30);
    await writeFile(path, torn);
    const next = await start();
    expect(next.seen).toEqual(written);
    await next.journal.close();
    await journal.close();
  });

  it("rule 2: a missing segment is refused by name, the first, a middle and the newest one", async () => {
    const { journal } = await start({ segmentBytes: 300 });
    for (let n = 0; n < 8; n += 1) await write(journal, 4);
    await journal.close();
    const names = await files();
    for (const name of [names[0]!, names[2]!, names.at(-1)!]) {
      await rename(join(dir, name), join(root, "away"));
      const error = await refusalOf(start({ epoch: 99 }));
      expect(error.code).toBe("journal-damaged");
      expect(error.facts).toMatchObject({ segment: name, offset: 0 });
      expect(error.message).toContain("missing");
      await rename(join(root, "away"), join(dir, name));
    }
    expect((await start()).seen.length).toBe(32);
  });

  it("refuses a newer format, and an epoch that is not newer", async () => {
    const { journal } = await start();
    await write(journal, 1);
    await journal.close();
    expect((await refusalOf(start({ epoch: 1 }))).message).toContain("not newer");
    const path = await newest();
    const bytes = await readFile(path);
    bytes.writeUInt16LE(FORMAT_VERSION + 1, 8);
    bytes.writeUInt32LE(crc32(bytes.subarray(0, 36)), 36);
    await writeFile(path, bytes);
    for (const attempt of [() => start({ epoch: 5 }), () => verifyJournal(dir), () => repairJournal(dir)]) {
      const error = await refusalOf(attempt());
      expect(error.code).toBe("journal-version");
      expect(error.facts).toMatchObject({ found: FORMAT_VERSION + 1, known: FORMAT_VERSION });
    }
  });

  it("rule 1: what a replaced server appends later never replays, in its old segment or in new ones", async () => {
    const zombie = await start({ segmentBytes: 400 });
    const written = await write(zombie.journal, 5);
    const successor = await start();
    expect(successor.seen).toEqual(written);
    // It does not know yet; its segment is not full, so it can still write there.
    await write(zombie.journal, 3);
    written.push(...(await write(successor.journal, 4)));
    await zombie.journal.close();
    await successor.journal.close();
    const third = await start();
    expect(third.seen).toEqual(written);
    await third.journal.close();
    expect(await verifyJournal(dir)).toMatchObject({ ok: true });
  });

  it("rule 1: a replaced server fails for good when it needs a new segment, and deletes nothing", async () => {
    const zombie = await start({ segmentBytes: 200 });
    await write(zombie.journal, 20);
    const rolled = zombie.journal.roll();
    const { upTo } = await rolled;
    const snapshot = await writeSnapshot({ dir, upTo }, []);
    const successor = await start();
    const states: unknown[] = [];
    zombie.journal.onState((state, detail) => states.push([state, detail.fatal]));
    await expect(zombie.journal.snapshotWritten(snapshot)).rejects.toThrow(/taken over/);
    await expect(zombie.journal.roll()).rejects.toThrow(/taken over/);
    expect(states).toEqual([["closed", true]]);
    await expect(zombie.journal.close()).rejects.toThrow(/taken over/);
    await successor.journal.close();
  });

  it("rule 1: a record is not reported when the home is not held any more", async () => {
    let held = true;
    const journal = await openJournal({ dir, epoch: 1, fence: async () => held }, () => undefined);
    await journal.whenDurable(journal.append(1, text("1:a")));
    held = false;
    const lsn = journal.append(1, text("2:b"));
    await expect(journal.whenDurable(lsn)).rejects.toThrow(/no longer holds/);
    expect(journal.durable).toBe(1);
    await expect(journal.close()).rejects.toThrow();
  });
});

const compact = async (journal: Journal, state: readonly string[]): Promise<void> => {
  const { upTo } = await journal.roll();
  const snapshot = await writeSnapshot(
    { dir, upTo },
    state.map((value) => ({ type: 2, payload: text(value) })),
  );
  await journal.snapshotWritten(snapshot);
};

function* manyRecords() {
  for (let n = 0; n < 100_000; n += 1) yield { type: 2, payload: text(`record ${n}`) };
  yield { type: 2, payload: Buffer.alloc(3_000_000, "b") };
}

describe("journal snapshots", () => {
  it("replay is the newest snapshot, then what came after; what it covers is deleted", async () => {
    const { journal } = await start({ segmentBytes: 500 });
    for (let n = 0; n < 6; n += 1) await write(journal, 10);
    const before = await journal.sizeOnDisk();
    await compact(journal, ["state of 60"]);
    expect(await journal.sizeOnDisk()).toBeLessThan(before / 3);
    expect(journal.bytesSinceSnapshot).toBeLessThan(2000);
    const later = await write(journal, 5);
    await compact(journal, ["state of 65"]);
    expect(await files("snap")).toHaveLength(1);
    later.splice(0, 5, ...(await write(journal, 2)));
    await journal.close();
    const { journal: next, seen } = await start();
    expect(seen).toEqual(["state of 65", ...later]);
    expect(next.appended).toBe(67);
    await compact(next, ["state of 67"]);
    await next.close();
    expect((await start()).seen).toEqual(["state of 67"]);
  });

  it("what is appended while a snapshot is written replays on top of it", async () => {
    const { journal } = await start();
    await write(journal, 3);
    const rolled = journal.roll();
    const during = [`${journal.append(1, text("4:during"))}:during`];
    const { upTo } = await rolled;
    expect(upTo.lastLsn).toBe(3);
    async function* records() {
      yield { type: 2, payload: text("state of 3") };
      during.push(...(await write(journal, 2)));
    }
    await journal.snapshotWritten(await writeSnapshot({ dir, upTo }, records()));
    await journal.close();
    expect((await start()).seen).toEqual(["state of 3", ...during]);
  });

  it("a snapshot without a valid trailer is ignored while the segments it covers are there, else refused by name", async () => {
    const { journal } = await start();
    const written = await write(journal, 5);
    const { upTo } = await journal.roll();
    const snapshot = await writeSnapshot({ dir, upTo }, [{ type: 2, payload: text("state of 5") }]);
    const path = join(dir, snapshot.name);
    const whole = await readFile(path);
    await writeFile(path, whole.subarray(0, whole.length - 1));
    const second = await start();
    expect(second.seen).toEqual(written);
    expect(second.journal.warnings.join()).toContain(snapshot.name);
    await second.journal.close();
    await writeFile(path, whole);
    await journal.snapshotWritten(snapshot).catch(() => undefined);
    await journal.close();
  });

  it("a damaged or missing snapshot that is needed is refused by name, and repaired", async () => {
    const { journal } = await start();
    await write(journal, 5);
    await compact(journal, ["one", "two", "three"]);
    const later = await write(journal, 2);
    await journal.close();
    const name = (await files("snap"))[0]!;
    const path = join(dir, name);
    const whole = await readFile(path);
    const at = whole.indexOf("two");
    for (const offset of [0, 45, at, whole.length - 3]) {
      await flip(path, offset);
      const error = await refusalOf(start({ epoch: 50 }));
      expect(error.code).toBe("journal-damaged");
      expect(error.facts).toMatchObject({ segment: name });
      await flip(path, offset);
    }
    await copyFile(path, join(root, "kept"));
    await rm(path);
    expect((await refusalOf(start({ epoch: 50 }))).facts).toMatchObject({
      segment: "00000001-00000001.log",
      offset: 0,
    });
    await rename(join(root, "kept"), path);
    await flip(path, at);
    const repaired = await repairJournal(dir);
    expect(repaired).toMatchObject({ changed: true, lost: { records: 1, exact: true } });
    expect(await readdir(repaired.movedTo!)).toContain(name);
    lives = 50;
    expect((await start()).seen).toEqual(["one", "three", ...later]);
  });

  it("writes and replays a snapshot of many records in chunks, giving the loop a turn", async () => {
    const { journal } = await start();
    await write(journal, 1);
    const { upTo } = await journal.roll();
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 1);
    const snapshot = await writeSnapshot({ dir, upTo }, manyRecords());
    clearInterval(timer);
    expect(turns).toBeGreaterThan(1);
    expect(snapshot.records).toBe(100_001);
    await journal.snapshotWritten(snapshot);
    await journal.close();
    const { seen } = await start();
    expect(seen.length).toBe(100_001);
    expect(seen[99_999]).toBe("record 99999");
    expect(seen[100_000]!.length).toBe(3_000_000);
  });
});

describe("journal on a failing disk", () => {
  const retry = { full: 5, error: 1, attempts: 3 };

  it("rule 2: after a failed fsync the segment is abandoned and its unacknowledged records are written again, once", async () => {
    const disk = fakeDisk();
    const journal = await openJournal({ dir: "/j", epoch: 1, io: disk.io, retry }, () => undefined);
    await journal.whenDurable(journal.append(1, text("one")));
    let synced: string[] = [];
    let failed = "";
    disk.fault = (op, path) => {
      if (op !== "datasync") return undefined;
      synced.push(path);
      if (failed !== "") return undefined;
      failed = path;
      return "EIO";
    };
    await journal.whenDurable(journal.append(1, text("two")));
    await journal.whenDurable(journal.append(1, text("three")));
    expect(journal.state).toBe("ok");
    expect(synced.filter((path) => path === failed)).toHaveLength(1);
    const seen: string[] = [];
    await readJournal("/j", (_type, payload) => seen.push(payload.toString()), disk.revive(() => 0.9).io);
    expect(seen).toEqual(["one", "two", "three"]);
  });

  it("rule 2: EDQUOT and ENOSPC mean full; records wait, nothing is reported, and it goes on when there is room", async () => {
    for (const op of ["write", "datasync", "create"]) {
      for (const code of ["ENOSPC", "EDQUOT"]) {
        const disk = fakeDisk();
        const journal = await openJournal(
          { dir: "/j", epoch: 1, io: disk.io, retry, segmentBytes: 1 },
          () => undefined,
        );
        await journal.whenDurable(journal.append(1, text("1")));
        const states: string[] = [];
        const full = new Promise<void>((resolve) => {
          journal.onState((state) => {
            states.push(state);
            if (state === "full") resolve();
          });
        });
        disk.fault = (called) => (called === op ? code : undefined);
        for (let n = 2; n <= 50; n += 1) journal.append(1, text(String(n)));
        await full;
        expect(journal.durable).toBe(1);
        expect(journal.pendingBytes).toBeGreaterThan(0);
        disk.fault = undefined;
        journal.retryNow();
        await journal.whenDurable(50);
        expect(states).toEqual(["full", "ok"]);
        await journal.close();
        const seen: string[] = [];
        await readJournal("/j", (_type, payload) => seen.push(payload.toString()), disk.io);
        expect(seen).toEqual(Array.from({ length: 50 }, (_, n) => String(n + 1)));
      }
    }
  });

  it("opens on a full disk, and closing there says what was not written", async () => {
    const disk = fakeDisk();
    disk.capacity = 0;
    const journal = await openJournal({ dir: "/j", epoch: 1, io: disk.io, retry }, () => undefined);
    expect(journal.state).toBe("full");
    journal.append(1, text("lost"));
    const error = await refusalOf(journal.close());
    expect(error.code).toBe("journal-full");
    expect(journal.durable).toBe(0);
  });

  it("EIO is tried a few times, then it is fatal and every waiter is told", async () => {
    const disk = fakeDisk();
    const journal = await openJournal({ dir: "/j", epoch: 1, io: disk.io, retry }, () => undefined);
    const states: unknown[] = [];
    journal.onState((state, detail) => states.push([state, detail.fatal]));
    disk.fault = (op) => (op === "write" ? "EIO" : undefined);
    const rolled = refusalOf(journal.roll());
    const error = await refusalOf(journal.whenDurable(journal.append(1, text("x"))));
    expect(error.code).toBe("journal-failed");
    expect((await rolled).code).toBe("journal-failed");
    expect(states).toEqual([["closed", true]]);
    expect(() => journal.append(1, text("y"))).toThrow(SlipwayError);
  });

  it("a listener that throws neither stops the journal nor goes unnoticed", async () => {
    const disk = fakeDisk();
    const journal = await openJournal({ dir: "/j", epoch: 1, io: disk.io, retry }, () => undefined);
    const listeners = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    const noticed = new Promise<Error>((resolve) => void process.once("uncaughtException", resolve));
    journal.onDurable((lsn) => {
      if (lsn === 1) throw new Error("a listener's own fault");
    });
    await journal.whenDurable(journal.append(1, text("x")));
    expect((await noticed).message).toBe("a listener's own fault");
    for (const listener of listeners) process.on("uncaughtException", listener);
    await journal.whenDurable(journal.append(1, text("y")));
    await journal.close();
  });
});

describe("journal reading, verifying, repairing", () => {
  it("is read while a server writes it, and stops quietly before what is not whole", async () => {
    const { journal } = await start({ segmentBytes: 2000 });
    const stop = new AbortController();
    const writing = (async () => {
      for (let n = 0; !stop.signal.aborted; n += 1) {
        await write(journal, 20);
        if (n % 20 !== 19) continue;
        const rolled = journal.roll();
        const count = journal.appended;
        const { upTo } = await rolled;
        await journal.snapshotWritten(await writeSnapshot({ dir, upTo }, [{ type: 2, payload: text(String(count)) }]));
      }
    })();
    for (let n = 0; n < 100; n += 1) {
      let count = 0;
      const atLeast = journal.durable;
      const { warnings } = await readJournal(dir, (type, payload) => {
        count = type === 2 ? Number(payload.toString()) : count + 1;
      });
      expect(count).toBeGreaterThanOrEqual(atLeast);
      expect(warnings.filter((warning) => !/torn tail|never used/.test(warning))).toEqual([]);
    }
    stop.abort();
    await writing;
    await journal.close();
  });

  it("repair keeps every readable record before and after any damage, and the next start works", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ file: fc.nat(), offset: fc.nat(), bytes: fc.integer({ min: 1, max: 80 }) }), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.option(fc.nat(), { nil: undefined }),
        async (hits, missing) => {
          dir = await mkdtemp(join(root, "r-"));
          lives = 0;
          const { journal } = await start({ segmentBytes: 400 });
          const written: string[] = [];
          for (let n = 0; n < 6; n += 1) written.push(...(await write(journal, 4, n * 7)));
          await journal.close();
          const names = await files();
          const end = (await stat(join(dir, names.at(-1)!))).size - 19;
          const places = new Map<string, ReturnType<typeof layout>>();
          for (const name of names) places.set(name, layout(await readFile(join(dir, name))));
          let endHit = false;
          for (const [index, hit] of hits.entries()) {
            const name = names[hit.file % names.length]!;
            const bytes = await readFile(join(dir, name));
            const from = hit.offset % bytes.length;
            const to = Math.min(bytes.length, from + hit.bytes);
            for (let at = from; at < to; at += 1) bytes[at]! ^= [0x5a, 0x33, 0x0f][index]!;
            await writeFile(join(dir, name), bytes);
            endHit ||= name === names.at(-1) && to > end;
            const left = places.get(name)!.filter((place) => place.to <= from || place.from >= to);
            places.set(name, left);
          }
          if (missing !== undefined) {
            const name = names[missing % names.length]!;
            await rm(join(dir, name));
            places.delete(name);
          }
          const before = await verifyJournal(dir);
          const repaired = await repairJournal(dir);
          expect(repaired.changed).toBe(!before.ok);
          expect(repaired.kept).toBe(before.records);
          expect(await verifyJournal(dir)).toMatchObject({ ok: true, records: before.records });
          lives = 10;
          const seen: string[] = [];
          let last = 0;
          const next = await openJournal({ dir, epoch: 10 }, (_type, payload, lsn) => {
            seen.push(payload.toString());
            expect(lsn).toBeGreaterThan(last);
            last = lsn;
          });
          // In order, none twice, none invented; and each record outside the damage is there.
          const indices = seen.map((value) => written.indexOf(value));
          expect(indices).not.toContain(-1);
          expect(indices).toEqual([...new Set(indices)].sort((a, b) => a - b));
          if (repaired.lost.exact && !endHit) expect(written.length - seen.length).toBe(repaired.lost.records);
          // Without its END the last segment's damaged tail cannot be distinguished from a torn one.
          const readable = [...places.values()].flat().map((place) => place.value);
          if (!endHit) expect(seen).toEqual(readable);
          await write(next, 2);
          await next.close();
          expect(await verifyJournal(dir)).toMatchObject({ ok: true, records: seen.length + 2 });
          await rm(dir, { recursive: true });
        },
      ),
      { numRuns: Number(process.env["JOURNAL_RUNS"] ?? 60) },
    );
  });

  it("repair loses exactly the record that was hit, puts the damaged file aside, and changes nothing the second time", async () => {
    const { journal } = await start();
    const written = await write(journal, 10);
    await write(journal, 1);
    await journal.close();
    const path = await newest();
    const bytes = await readFile(path);
    await flip(path, bytes.indexOf(written[4]!) + 3);
    expect((await verifyJournal(dir)).problems).toMatchObject([{ segment: "00000001-00000001.log", lostRecords: 1 }]);
    const repaired = await repairJournal(dir);
    expect(repaired).toMatchObject({ changed: true, kept: 10, lost: { records: 1, exact: true } });
    expect((await readdir(repaired.movedTo!)).sort()).toEqual(["00000001-00000001.log", "report.json"]);
    expect(await repairJournal(dir)).toMatchObject({ changed: false, movedTo: undefined });
    const seen: string[] = [];
    const next = await openJournal({ dir, epoch: 2 }, (_type, payload) => seen.push(payload.toString()));
    written.splice(4, 1);
    expect(seen.slice(0, 9)).toEqual(written);
    expect(next.appended).toBe(11);
    await next.close();
  });

  it("inspects: segments, epochs, records, format; a segment that was never used is told", async () => {
    const { journal } = await start();
    await write(journal, 3);
    await journal.close();
    await writeFile(join(dir, "00000001-00000002.log"), "SLIPWAYJ");
    await appendFile(join(dir, "stray.txt"), "x");
    const info = await inspectJournal(dir);
    expect(info).toMatchObject({ format: FORMAT_VERSION, records: 3, lastLsn: 3, epochs: [1], problems: [] });
    expect(info.segments.map((segment) => segment.use)).toEqual(["replayed", "ignored"]);
    expect(info.warnings.join()).toContain("never used");
    expect(await inspectJournal(join(dir, "none"))).toMatchObject({ records: 0, segments: [] });
  });
});
