import { describe, expect, it } from "vitest";
import {
  type Journal,
  type Replay,
  openJournal,
  repairJournal,
  verifyJournal,
  writeSnapshot,
} from "../../../src/journal/index.ts";
import { type FakeDisk, fakeDisk } from "./disk.ts";

const DIR = "/journal";

/** Accepts everything but poison. */
const taker = (): { replay: Replay; seen: string[] } => {
  const seen: string[] = [];
  const replay: Replay = (_type, payload, lsn) => {
    if (payload.toString().startsWith("poison")) throw new RangeError(`${payload.toString()} cannot be swallowed`);
    seen.push(`${lsn}:${payload.toString()}`);
  };
  return { replay, seen };
};

const open = async (disk: FakeDisk, epoch: number, replay: Replay = () => undefined): Promise<Journal> =>
  openJournal({ dir: DIR, epoch, io: disk.io, segmentBytes: 200 }, replay);

const append = async (journal: Journal, ...texts: string[]): Promise<void> => {
  for (const text of texts) await journal.whenDurable(journal.append(1, Buffer.from(text)));
};

const code = (error: unknown): unknown => (error as { code: string }).code;

describe("an event that cannot be applied", () => {
  it("rule 2: is refused at start by segment, offset and record; repair sets aside that one, into a file, and nothing else", async () => {
    const disk = fakeDisk();
    const first = await open(disk, 1);
    await append(first, ...Array.from({ length: 9 }, (_, n) => (n === 3 || n === 6 ? `poison ${n}` : `text ${n}`)));
    await first.close();
    const files = [...disk.files.keys()].filter((path) => path.endsWith(".log"));
    expect(files.length).toBeGreaterThan(1);

    const { replay } = taker();
    const error: unknown = await open(disk, 2, replay).catch((problem: unknown) => problem);
    expect(error).toMatchObject({
      code: "journal-event",
      facts: { segment: expect.stringMatching(/\.log$/), record: 4, detail: "poison 3 cannot be swallowed" },
    });
    const { segment, offset } = (error as { facts: { segment: string; offset: number } }).facts;
    // the frame of a record is eleven bytes
    expect(
      disk.files
        .get(`${DIR}/${segment}`)!
        .subarray(offset + 11, offset + 19)
        .toString(),
    ).toBe("poison 3");
    expect([...disk.files.keys()].filter((path) => path.endsWith(".log"))).toEqual(files);
    expect((await verifyJournal(DIR, { io: disk.io, replay: taker().replay })).problems).toHaveLength(2);

    const repaired = await repairJournal(DIR, {
      io: disk.io,
      replay: taker().replay,
      explain: (_type, payload) => payload.toString(),
    });
    expect(repaired).toMatchObject({
      changed: true,
      kept: 7,
      lost: { records: 0 },
      setAside: [{ record: 4 }, { record: 7 }],
    });
    for (const { file, record } of repaired.setAside)
      expect(JSON.parse(disk.files.get(file)!.toString())).toMatchObject({ record, event: `poison ${record - 1}` });

    // on disk, whole, and numbered as before
    const after = disk.revive();
    for (const { file } of repaired.setAside) expect(after.files.has(file)).toBe(true);
    const second = taker();
    const journal = await open(after, 2, second.replay);
    expect(second.seen).toEqual([1, 2, 3, 5, 6, 8, 9].map((lsn) => `${lsn}:text ${lsn - 1}`));
    expect(journal.appended).toBe(9);
    await append(journal, "more");
    await journal.close();
    expect(await verifyJournal(DIR, { io: after.io, replay: taker().replay })).toMatchObject({ ok: true });
    expect(await repairJournal(DIR, { io: after.io, replay: taker().replay })).toMatchObject({ changed: false });
  });

  it("rule 2: the same for a part of a snapshot", async () => {
    const disk = fakeDisk();
    const first = await open(disk, 1);
    await append(first, "a", "b");
    const { upTo } = await first.roll();
    const parts = ["sum 0", "poison 1", "sum 2"].map((text) => ({ type: 2, payload: Buffer.from(text) }));
    await first.snapshotWritten(await writeSnapshot({ dir: DIR, upTo, io: disk.io }, parts));
    await append(first, "c", "poison 3", "d");
    await first.close();
    expect(code(await open(disk, 2, taker().replay).catch((problem: unknown) => problem))).toBe("journal-event");
    const { setAside } = await repairJournal(DIR, { io: disk.io, replay: taker().replay });
    expect(setAside.map(({ detail }) => detail.slice(0, 8))).toEqual(["poison 1", "poison 3"]);
    const second = taker();
    await (await open(disk, 2, second.replay)).close();
    expect(second.seen).toEqual(["2:sum 0", "2:sum 2", "3:c", "5:d"]);
  });

  it("what else a replay throws is its own affair: nobody sets anything aside for it", async () => {
    class BeginAgain extends Error {}
    const disk = fakeDisk();
    const journal = await open(disk, 1);
    await append(journal, "a");
    await journal.close();
    const replay = (): void => {
      throw new BeginAgain();
    };
    await expect(open(disk, 2, replay)).rejects.toBeInstanceOf(BeginAgain);
    await expect(repairJournal(DIR, { io: disk.io, replay })).rejects.toBeInstanceOf(BeginAgain);
  });
});
