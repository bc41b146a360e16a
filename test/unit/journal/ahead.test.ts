import { describe, expect, it } from "vitest";
import {
  type Journal,
  inspectJournal,
  openHistory,
  openJournal,
  readJournal,
  type Replay,
  verifyJournal,
} from "../../../src/journal/index.ts";
import { type FakeDisk, fakeDisk } from "./disk.ts";

const text = (value: string): Buffer => Buffer.from(value);

describe("a segment prepares what it is written to next", () => {
  /** Its size when no call of it has been under way for some turns of the loop. */
  const atRest = async (disk: FakeDisk): Promise<number> => {
    for (let still = 0, { calls } = disk; still < 10; still = calls === disk.calls ? still + 1 : 0) {
      ({ calls } = disk);
      await new Promise((resolve) => void setImmediate(resolve));
    }
    return disk.files.get("/j/00000001-00000001.log")!.length;
  };
  const open = (disk: FakeDisk, epoch = 1, replay: Replay = () => undefined): Promise<Journal> =>
    openJournal({ dir: "/j", epoch, io: disk.io, aheadBytes: 1000 }, replay);

  it("at rest, once for many commits, which find the file as long as they need it", async () => {
    const disk = fakeDisk();
    const journal = await open(disk);
    const sizes = new Set<number>();
    for (let n = 1; n <= 40; n += 1) {
      await journal.whenDurable(journal.append(1, text(`record ${n}`)));
      sizes.add(await atRest(disk));
    }
    expect(sizes.size).toBeGreaterThan(2);
    expect(sizes.size).toBeLessThan(8);
    await journal.close();
    const { segments } = await inspectJournal("/j", { io: disk.io });
    expect(segments[0]).toMatchObject({ size: segments[0]!.length, lastLsn: 40 });
  });

  it("which is nothing to who reads it, and no torn tail, whether process or machine died", async () => {
    for (const next of [(disk: FakeDisk) => disk.kill(), (disk: FakeDisk) => disk.revive()]) {
      const disk = fakeDisk();
      const journal = await open(disk);
      await journal.whenDurable(journal.append(1, text("one")));
      await journal.whenDurable(journal.append(1, text("two")));
      await atRest(disk);
      const after = next(disk);
      const seen: string[] = [];
      const successor = await open(after, 2, (_type, payload) => seen.push(payload.toString()));
      expect([seen, successor.warnings]).toEqual([["one", "two"], []]);
      await successor.close();
      expect(await verifyJournal("/j", { io: after.io })).toMatchObject({ ok: true, records: 2, warnings: [] });
    }
  });

  it("nor damage to who reads while it is written", async () => {
    const seen: string[] = [];
    const replay: Replay = (_type, payload) => seen.push(payload.toString());
    const ways = {
      read: (io: FakeDisk["io"]) => readJournal("/j", replay, io),
      verify: (io: FakeDisk["io"]) => verifyJournal("/j", { io, replay }),
      history: async (io: FakeDisk["io"]) => {
        const { newest, close } = await openHistory("/j", io);
        await newest.read(replay);
        await close();
        return { warnings: [] };
      },
    };
    for (const way of Object.values(ways)) {
      const disk = fakeDisk();
      const journal = await open(disk);
      await journal.whenDurable(journal.append(1, text("one")));
      await atRest(disk);
      let n = 0;
      const io: FakeDisk["io"] = {
        ...disk.io,
        open: async (path, flags) => {
          const file = await disk.io.open(path, flags);
          const read: typeof file.read = async (...args) => {
            const got = await file.read(...args);
            // between any two looks of the reader two commits, of which the second says that the first is on disk
            if (path.endsWith(".log") && (n += 1) <= 8)
              for (const part of ["a", "b"]) await journal.whenDurable(journal.append(1, text(`${n} ${part}`)));
            return got;
          };
          return { ...file, read };
        },
      };
      seen.length = 0;
      expect(await way(io)).toMatchObject({ warnings: [] });
      expect(seen).toEqual(["one", ...seen.slice(1).map((_, i) => `${(i >> 1) + 1} ${"ab"[i % 2]}`)]);
      await journal.close();
    }
  });

  it("nor where the segment that would say how much of it counts is damaged", async () => {
    const disk = fakeDisk();
    const journal = await open(disk);
    await journal.whenDurable(journal.append(1, text("one")));
    await atRest(disk);
    const after = disk.kill();
    const successor = await open(after, 2);
    await successor.close();
    const path = "/j/00000002-00000002.log";
    const file = Buffer.from(after.files.get(path)!);
    file[60]! ^= 0xff;
    after.put(path, file);
    const { problems } = await verifyJournal("/j", { io: after.io });
    expect(problems.map(({ segment }) => segment)).toEqual(["00000002-00000002.log"]);
  });

  it("but a record that is cut there is still one", async () => {
    const disk = fakeDisk();
    const journal = await open(disk);
    await journal.whenDurable(journal.append(1, text("one")));
    await atRest(disk);
    const file = disk.files.get("/j/00000001-00000001.log")!;
    const end = file.findLastIndex((byte) => byte !== 0) + 1;
    disk.put("/j/00000001-00000001.log", Buffer.concat([file.subarray(0, end), text("x"), file.subarray(end + 1)]));
    const { warnings } = await verifyJournal("/j", { io: disk.io });
    expect(warnings.join()).toMatch(/cut a torn tail of \d+ bytes/);
  });

  it("where there is space for it: without, nothing is said, and records go on as long as they find room", async () => {
    const disk = fakeDisk();
    disk.capacity = 900;
    const journal = await open(disk);
    for (let n = 1; n <= 5; n += 1) {
      await journal.whenDurable(journal.append(1, text(`record ${n}`)));
      expect(await atRest(disk)).toBeLessThan(700);
    }
    expect(journal.state).toBe("ok");
    await journal.close();
  });

  it("and begins another segment when what it prepared may not be on disk", async () => {
    const disk = fakeDisk();
    const journal = await open(disk);
    await atRest(disk);
    let syncs = 0;
    // the second sync of a commit is that of what it prepares
    disk.fault = (op) => (op === "datasync" && (syncs += 1) === 2 ? "EIO" : undefined);
    const big = text("x".repeat(800));
    await journal.whenDurable(journal.append(1, big));
    await atRest(disk);
    expect(syncs).toBe(2);
    await journal.whenDurable(journal.append(1, text("two")));
    expect(journal.state).toBe("ok");
    await atRest(disk);
    const seen: string[] = [];
    await readJournal("/j", (_type, payload) => seen.push(payload.toString()), disk.revive(() => 0.9).io);
    expect(seen).toEqual([big.toString(), "two"]);
    expect([...disk.files.keys()].filter((path) => path.endsWith(".log"))).toHaveLength(2);
  });

  it("once, where only a sync says that there is no space, as on disks of a network", async () => {
    const disk = fakeDisk();
    const used = (): number => [...disk.files.values()].reduce((sum, { length }) => sum + length, 0);
    disk.fault = (op) => (op === "datasync" && used() > 900 ? "EDQUOT" : undefined);
    const journal = await open(disk);
    for (let n = 1; n <= 5; n += 1) {
      await journal.whenDurable(journal.append(1, text(`record ${n}`)));
      await atRest(disk);
    }
    expect(journal.state).toBe("ok");
    expect([...disk.files.keys()].filter((path) => path.endsWith(".log"))).toHaveLength(2);
    await journal.close();
  });
});
