import { mkdir, mkdtemp, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { encodeEvent } from "../../../src/core/codec.ts";
import { encodeState } from "../../../src/core/snapshot.ts";
import { pageCodec } from "../../../src/archive/archive.ts";
import { compact, replayState } from "../../../src/archive/compact.ts";
import { type DeepVerdict, verifyDeep } from "../../../src/archive/verify.ts";
import { type Journal, openJournal, readJournal, writeSnapshot } from "../../../src/journal/index.ts";
import { journalCommand } from "../../../src/server/journal-command.ts";
import { type Driver, createDriver, group, spec } from "../core/model.ts";

/** Journals on a real disk that a driver wrote instead of a server. */

let home: string;
let driver: Driver;
let journal: Journal;
let written: number;

const open = async (epoch: number, keepHistory: boolean): Promise<void> => {
  journal = await openJournal({ dir: join(home, "journal"), epoch, keepHistory }, () => undefined);
};

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "slw-deep-"));
  await mkdir(join(home, "journal"));
  driver = createDriver();
  written = 0;
});

afterEach(async () => {
  await journal.close();
  await rm(home, { recursive: true });
});

const append = (): void => {
  for (const event of driver.events.slice(written)) {
    const { type, payload } = encodeEvent(event);
    journal.append(type, payload);
  }
  written = driver.events.length;
};

const compactNow = async (): Promise<string> => {
  append();
  const { upTo } = await journal.roll();
  const { snapshot } = await compact(home, upTo);
  await journal.snapshotWritten(snapshot);
  return snapshot.name;
};

/** Something of everything: a run that ends, one that waits for it, one that is open. */
const live = (agent: number): void => {
  const a = driver.submit(spec([group("a", 3)]));
  driver.submit(spec([group("b", 1, { after: [{ run: a.id, on: "ok" }] })]));
  for (const row of [0, 1, 2]) driver.assign(agent, a.id, row);
  driver.end(agent, a.id, [0, 1], 0);
};

const finishFirst = (agent: number): void => driver.end(agent, 1, [2], 0);

const command = async (...args: string[]): Promise<{ status: number; output: string }> => {
  let output = "";
  const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    output += String(text);
    return true;
  });
  try {
    return { status: await journalCommand([...args, "--home", home]), output };
  } finally {
    spy.mockRestore();
  }
};

describe("journal verify --deep", () => {
  it("compares snapshot and tail with a replay of everything, over several compactions and servers", async () => {
    await open(1, true);
    const agent = driver.join();
    live(agent);
    await compactNow();
    finishFirst(agent);
    live(agent);
    const snapshot = await compactNow();
    driver.send({ type: "run.retried", at: 9000, run: 1, which: "all" });
    append();
    await journal.close();
    await open(2, true);
    driver.restart(0);
    driver.send({ type: "agents.lost", at: 9001, agents: [agent], reason: "gone" });
    append();
    await journal.whenDurable(journal.appended);
    const verdict = await verifyDeep(home, 50);
    expect(verdict).toMatchObject({ ok: true, comparedWith: "all", from: null, snapshot, lastLsn: written });
    expect(verdict.records).toBe(written);
  });

  it("says that what led to the snapshot is gone, and what was compared then", async () => {
    await open(1, false);
    const agent = driver.join();
    live(agent);
    const first = await compactNow();
    finishFirst(agent);
    append();
    await journal.close();
    expect(await verifyDeep(home, 5)).toMatchObject({ ok: true, comparedWith: "none", from: first });
    const { status, output } = await command("verify", "--deep");
    expect(status).toBe(0);
    expect(output).toContain(`what led to ${first} is gone and was not compared`);
    await open(2, true);
    live(agent);
    const second = await compactNow();
    expect(await verifyDeep(home, 5)).toMatchObject({ ok: true, comparedWith: "older", from: first, snapshot: second });
  });

  it("a snapshot that says something else than what happened is found, named, and an exit status", async () => {
    await open(1, true);
    const agent = driver.join();
    live(agent);
    append();
    const { upTo } = await journal.roll();
    // as Slipway wrote it in format 1 with another limit: history that never happened
    const other = await replayState(home, (replay) => readJournal(join(home, "journal"), replay));
    other.runs.get(1)!.table.pages[0]!.losses[1] = 3;
    other.runDependents.clear();
    const records = encodeState(other, new Map(), pageCodec);
    await journal.snapshotWritten(await writeSnapshot({ dir: join(home, "journal"), upTo }, records));
    finishFirst(agent);
    append();
    await journal.whenDurable(journal.appended);
    const { status, output } = await command("verify", "--deep");
    expect(status).toBe(1);
    expect(output).toContain("is NOT the same as a replay of everything since the first record");
    expect(output).toContain("run 1, row 1: losses: 3 at the next start, 0 there");
    expect(output).toContain("run 2, group b: base: 0 at the next start, 1 there");
    const asked = await command("verify", "--deep", "--json");
    expect(asked.status).toBe(1);
    const { deep } = JSON.parse(asked.output) as { deep: DeepVerdict };
    expect(deep).toMatchObject({ ok: false, comparedWith: "all" });
    expect(deep.differences.map(({ what }) => what)).toContain("run 1, row 1: losses");
    expect((await command("verify")).status).toBe(0);
  });

  it("a run's file that is gone, or damage, is an error and no difference", async () => {
    await open(1, true);
    const agent = driver.join();
    live(agent);
    finishFirst(agent);
    await compactNow();
    const [summary] = (
      await replayState(home, (replay) => readJournal(join(home, "journal"), replay))
    ).archived.values();
    await unlink(join(home, summary!.file));
    const error = vi.spyOn(process.stderr, "write").mockImplementation(() => true);
    expect((await command("verify", "--deep")).status).not.toBe(0);
    expect(error.mock.calls.flat().join("")).toContain(summary!.file);
    error.mockRestore();
  });
});

describe("losses of format 1", () => {
  const lost = async (): Promise<void> => {
    const old = createDriver({ format1: 50 });
    await open(1, false);
    const run = old.submit(spec([group("a", 1)]));
    for (let n = 0; n < 7; n += 1) {
      const agent = old.join();
      old.assign(agent, run.id, 0);
      old.send({ type: "agents.lost", at: 9000, agents: [agent], reason: "gone" });
    }
    driver = old;
    append();
    await journal.close();
  };

  it("are judged by `journal compact` as by a start, by the limit in clusters.yaml, once", async () => {
    await lost();
    await writeFile(join(home, "clusters.yaml"), "limits: { losses: 50 }\n");
    expect((await command("verify", "--deep")).output).toContain("7 losses of tasks hold no decision");
    expect((await command("compact")).status).toBe(0);
    await writeFile(join(home, "clusters.yaml"), "limits: { losses: 1 }\n");
    const state = await replayState(home, (replay) => readJournal(join(home, "journal"), replay), { losses: 1 });
    expect(state).toMatchObject({ undecided: 0 });
    expect(state.runs.get(1)?.finished).toBe(0);
    expect((await command("verify", "--deep")).status).toBe(0);
  });

  it("never get into a snapshot by a guess", async () => {
    await lost();
    await open(2, false);
    const { upTo } = await journal.roll();
    await expect(compact(home, upTo)).rejects.toMatchObject({ code: "internal" });
  });
});
