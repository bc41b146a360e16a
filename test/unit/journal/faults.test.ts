import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Journal,
  type JournalOptions,
  openJournal,
  verifyJournal,
  writeSnapshot,
} from "../../../src/journal/index.ts";
import { type FakeDisk, fakeDisk } from "./disk.ts";

const DIR = "/journal";
const RECORD = 1;
const SUM = 2;

/** A model of one journal over many lives: `history[lsn - 1]` is what was appended under that LSN. */
interface World {
  disk: FakeDisk;
  journal: Journal;
  history: string[];
  epoch: number;
}

type Sizes = Required<Pick<JournalOptions, "segmentBytes" | "aheadBytes">>;

const retry = { full: 1, error: 1, attempts: 4 };

const SIZES: Sizes = { segmentBytes: 4000, aheadBytes: 300 };

/** Opens the journal and returns what it replayed: the records of the snapshot replace everything before it. */
const open = async (
  disk: FakeDisk,
  epoch: number,
  { segmentBytes, aheadBytes }: Sizes,
): Promise<{ journal: Journal; seen: string[] }> => {
  const seen: string[] = [];
  let last = 0;
  const journal = await openJournal(
    { dir: DIR, epoch, io: disk.io, segmentBytes, aheadBytes, retry },
    (type, payload, lsn) => {
      if (type === SUM) {
        seen.push(...(JSON.parse(payload.toString()) as string[]));
        last = lsn;
        expect(seen.length).toBe(lsn);
        return;
      }
      expect(lsn).toBe(last + 1);
      last = lsn;
      seen.push(payload.toString());
    },
  );
  return { journal, seen };
};

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Waits until everything is durable, the journal fails, or the machine dies. */
const settle = async (world: World): Promise<void> => {
  const { journal, disk } = world;
  await Promise.race([journal.whenDurable(journal.appended).catch(() => undefined), disk.crashed]);
  for (let n = 0; n < 3; n += 1) await turn();
};

const snapshot = async (world: World): Promise<void> => {
  const { journal, disk, history } = world;
  const rolled = journal.roll();
  const state = [...history];
  const { upTo } = await rolled;
  const payload = Buffer.from(JSON.stringify(state));
  const info = await writeSnapshot({ dir: DIR, upTo, io: disk.io }, [{ type: SUM, payload }]);
  await journal.snapshotWritten(info);
};

type Step =
  | { do: "append"; sizes: number[] }
  | { do: "settle" }
  | { do: "turn" }
  | { do: "snapshot" }
  | { do: "full"; room: number }
  | { do: "room" }
  | { do: "fault"; op: string; code: string; after: number; sizes: number[] }
  | { do: "short" }
  | { do: "close" }
  | { do: "kill"; after: number; sizes: number[]; snapshot: boolean }
  | { do: "crash"; after: number; seed: number; sizes: number[]; snapshot: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("append" as const), sizes: fc.array(fc.nat(300), { maxLength: 12 }) }),
  },
  { weight: 3, arbitrary: fc.constant({ do: "settle" as const }) },
  { weight: 2, arbitrary: fc.constant({ do: "turn" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "snapshot" as const }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("full" as const), room: fc.nat(400) }) },
  { weight: 1, arbitrary: fc.constant({ do: "room" as const }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("fault" as const),
      op: fc.constantFrom("write", "datasync", "create", "rename", "syncdir", "truncate"),
      code: fc.constantFrom("EIO", "ENOSPC", "EDQUOT", "ESTALE"),
      after: fc.nat(2),
      sizes: fc.array(fc.nat(300), { maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: "short" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "close" as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("kill" as const),
      after: fc.nat(40),
      sizes: fc.array(fc.nat(300), { maxLength: 12 }),
      snapshot: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("crash" as const),
      after: fc.nat(40),
      seed: fc.nat(),
      sizes: fc.array(fc.nat(300), { maxLength: 12 }),
      snapshot: fc.boolean(),
    }),
  },
);

const randomOf = (seed: number): (() => number) => {
  let state = seed | 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 0) / 2 ** 32;
  };
};

const heal = (disk: FakeDisk): void => {
  disk.fault = undefined;
  disk.capacity = Number.POSITIVE_INFINITY;
};

/** The next life: exactly the acknowledged records, and perhaps some that were not, in order and once. */
const reopen = async (world: World, disk: FakeDisk, durable: number, sizes: Sizes): Promise<void> => {
  const { journal, seen } = await open(disk, world.epoch + 1, sizes);
  expect(seen.length).toBeGreaterThanOrEqual(durable);
  expect(seen).toEqual(world.history.slice(0, seen.length));
  expect(journal.appended).toBe(seen.length);
  Object.assign(world, { disk, journal, history: seen, epoch: world.epoch + 1 });
};

const appendAll = (world: World, sizes: readonly number[]): void => {
  for (const size of sizes) {
    const text = `${world.epoch}.${world.history.length}.${"x".repeat(size)}`;
    world.history.push(text);
    expect(world.journal.append(RECORD, Buffer.from(text))).toBe(world.history.length);
  }
};

const apply = async (world: World, action: Step, sizes: Sizes): Promise<void> => {
  const { disk, journal } = world;
  switch (action.do) {
    case "append":
      return appendAll(world, action.sizes);
    case "turn":
      return turn();
    case "settle":
      disk.capacity = Number.POSITIVE_INFINITY;
      return settle(world);
    case "snapshot":
      heal(disk);
      return snapshot(world);
    case "full":
      disk.capacity = [...disk.files.values()].reduce((sum, data) => sum + data.length, 0) + action.room;
      return;
    case "room":
      disk.capacity = Number.POSITIVE_INFINITY;
      journal.retryNow();
      return;
    case "short": {
      const random = randomOf(1);
      disk.fault = (op) => (op === "write" ? Math.floor(random() * 400) : undefined);
      return;
    }
    case "fault": {
      let left = action.after;
      disk.fault = (op) => {
        if (op !== action.op || left-- > 0) return undefined;
        disk.fault = undefined;
        return action.code;
      };
      appendAll(world, action.sizes);
      disk.capacity = Number.POSITIVE_INFINITY;
      return settle(world);
    }
    case "close":
      heal(disk);
      await journal.close();
      expect(journal.durable).toBe(journal.appended);
      return reopen(world, disk, journal.durable, sizes);
    case "kill":
    case "crash": {
      disk.crashAt = disk.calls + 1 + action.after;
      appendAll(world, action.sizes);
      if (action.snapshot) await Promise.race([snapshot(world).catch(() => undefined), disk.crashed]);
      await settle(world);
      const next = action.do === "kill" ? disk.kill() : disk.revive(randomOf(action.seed));
      return reopen(world, next, journal.durable, sizes);
    }
  }
};

describe("journal under faults", () => {
  it(
    "rules 1 and 2: any mix of crashes, full disks, short writes and failing calls keeps what was acknowledged, once and in order",
    { timeout: 60_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(step, { maxLength: 40 }),
          fc.record({
            segmentBytes: fc.integer({ min: 200, max: 4000 }),
            aheadBytes: fc.constantFrom(0, 100, 700, 3000),
          }),
          async (steps, sizes) => {
            const disk = fakeDisk();
            const { journal } = await open(disk, 1, sizes);
            const world: World = { disk, journal, history: [], epoch: 1 };
            for (const action of steps) await apply(world, action, sizes);
            heal(world.disk);
            await world.journal.close();
            expect(world.journal.durable).toBe(world.history.length);
            expect(await verifyJournal(DIR, { io: world.disk.io })).toMatchObject({ ok: true });
            const { seen } = await open(world.disk, world.epoch + 1, sizes);
            expect(seen).toEqual(world.history);
          },
        ),
        {
          numRuns: Number(process.env["JOURNAL_RUNS"] ?? 300),
          examples: [
            // found by a random run: the head named a segment that was removed after a failed sync of the directory
            [
              [
                { do: "fault", op: "syncdir", code: "EIO", after: 1, sizes: [] },
                { do: "crash", after: 16, seed: 110650931, sizes: [0], snapshot: true },
              ],
              { segmentBytes: 200, aheadBytes: 0 },
            ],
          ],
        },
      );
    },
  );

  /** A server that dies while its records are written but not synced; what its successor acknowledged. */
  const killedThenSucceeded = async (
    failed: boolean,
  ): Promise<{ disk: FakeDisk; journal: Journal; acknowledged: string[] }> => {
    const disk = fakeDisk();
    const first = await open(disk, 1, SIZES);
    first.journal.append(RECORD, Buffer.from("first"));
    await first.journal.whenDurable(1);
    // what it does at rest is done
    for (let n = 0; n < 20; n += 1) await turn();
    // it dies before the sync of its next record, or after that sync has failed
    disk.fault = (op) => {
      if (op === (failed ? "datasync" : "write")) disk.crashAt = disk.calls + 1;
      return failed && op === "datasync" ? "EIO" : undefined;
    };
    first.journal.append(RECORD, Buffer.from("second"));
    await disk.crashed;
    const next = disk.kill();
    const second = await open(next, 2, SIZES);
    expect(second.seen).toEqual(["first", "second"]);
    const acknowledged = [...second.seen, "third"];
    await second.journal.whenDurable(second.journal.append(RECORD, Buffer.from("third")));
    return { disk: next, journal: second.journal, acknowledged };
  };

  it("rules 1 and 2: what a successor replays is on disk before it goes on: a power loss takes nothing of it", async () => {
    for (const failed of [false, true]) {
      const { disk, acknowledged } = await killedThenSucceeded(failed);
      const after = disk.revive();
      expect(await verifyJournal(DIR, { io: after.io }), failed ? "after a failed sync" : "").toMatchObject({
        ok: true,
      });
      expect((await open(after, 3, SIZES)).seen).toEqual(acknowledged);
    }
  });

  it("rules 1 and 2: the same for a snapshot whose name was not on disk when its writer was killed", async () => {
    const { disk, journal, acknowledged } = await killedThenSucceeded(false);
    const { upTo } = await journal.roll();
    let synced = true;
    disk.fault = (op) => {
      // the process that compacts is killed right after the rename
      if (op === "syncdir" && !synced) disk.crashAt = disk.calls;
      if (op === "rename") synced = false;
      return undefined;
    };
    const payload = Buffer.from(JSON.stringify(acknowledged));
    void writeSnapshot({ dir: DIR, upTo, io: disk.io }, [{ type: SUM, payload }]).catch(() => undefined);
    for (let n = 0; n < 50; n += 1) await turn();
    const next = disk.kill();
    const third = await open(next, 3, SIZES);
    expect(third.seen).toEqual(acknowledged);
    await third.journal.whenDurable(third.journal.append(RECORD, Buffer.from("fourth")));
    const after = next.revive();
    expect(await verifyJournal(DIR, { io: after.io })).toMatchObject({ ok: true });
    expect((await open(after, 4, SIZES)).seen).toEqual([...acknowledged, "fourth"]);
  });
});
