import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadClusters } from "../../../src/config/load-clusters.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { createReplay, summarise } from "../../../src/core/snapshot.ts";
import { type State, createState } from "../../../src/core/state.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { pageCodec, writeArchive } from "../../../src/archive/archive.ts";
import { createClock } from "../../../src/server/clock.ts";
import { createEngine } from "../../../src/server/engine.ts";
import { type Journal, openJournal } from "../../../src/journal/index.ts";
import { createSubmission } from "../../../src/submission/submission.ts";
import { type FakeDisk, fakeDisk } from "../journal/disk.ts";

/** One submit, one run: requests with the same uuid, at once, one after the other, and across a restart. */

type Submit = ReturnType<typeof createSubmission>;

let home: string;
let disk: FakeDisk;
let journal: Journal;
let state: State;
let submit: Submit;
let epoch = 0;

/** Starts a server on what is on the disk. */
const start = async (): Promise<void> => {
  epoch += 1;
  state = createState();
  const replay = createReplay(state, pageCodec, {
    restore: () => {
      throw new Error("nothing is archived here");
    },
  });
  journal = await openJournal({ dir: "/j", epoch, io: disk.io }, replay);
  const engine = createEngine(state, createScheduler(), journal, createClock());
  engine.commit({ type: "server.started", at: 1, epoch, host: "h", pid: 1, version: "1" });
  submit = createSubmission({
    engine,
    journal,
    home,
    clusters: await loadClusters({ home }),
    largest: new Map([["local", { cpus: 8 * FRACTION, mem: 24 * 2 ** 30 }]]),
    shared: [],
    described: () => undefined,
    places: { check: () => undefined },
    redirects: { now: async () => (spec) => spec },
    mayTake: () => undefined,
    firstMemory: () => 3 * 2 ** 30,
  });
};

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "slipway-submission-"));
  disk = fakeDisk();
  await start();
});
afterEach(async () => {
  await journal.close();
  await rm(home, { recursive: true });
});

const document = (uuid: string, more: object = {}): object => ({
  uuid,
  cwd: "/",
  environment: {},
  tasks: [{ run: "echo {item}", each: { stream: "lines" } }],
  ...more,
});
const items = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => `item ${from + i}`);

/** A request whose lines are sent one by one; `cut` ends it without its last line. */
const request = (): { lines: AsyncIterable<unknown>; send(...lines: unknown[]): void; end(): void; cut(): void } => {
  const waiting: unknown[] = [];
  let over = false;
  let wake = (): void => undefined;
  const send = (...lines: unknown[]): void => {
    waiting.push(...lines);
    wake();
  };
  const cut = (): void => {
    over = true;
    wake();
  };
  async function* lines(): AsyncGenerator<unknown> {
    for (;;) {
      while (waiting.length > 0) yield waiting.shift();
      if (over) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  return { lines: lines(), send, cut, end: () => (send({ end: true }), cut()) };
};

/** A whole request at once. */
const whole = (...lines: unknown[]): AsyncIterable<unknown> => {
  const made = request();
  made.send(...lines);
  made.end();
  return made.lines;
};

/** Waits until the requests so far have taken what was sent: they take a line in a few turns of the loop. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

const textsOf = (run: number): string[] => [...state.runs.get(run)!.groups[0]!.items!];

describe("rule 7: submits", () => {
  it("equal requests at once are one run", async () => {
    const first = document(randomUUID(), { tasks: [{ run: "true", each: { array: "1-5000" } }] });
    const answers = await Promise.all(Array.from({ length: 8 }, () => submit(whole(first))));
    expect(answers).toEqual(Array.from({ length: 8 }, () => ({ run: 1, total: 5000 })));
    expect(state.runs.size).toBe(1);
  });

  it("what is refused before its first item uses up no id", async () => {
    const none = submit(whole(document(randomUUID())));
    await expect(none).rejects.toMatchObject({ code: "bad-value", facts: { detail: "has no items" } });
    const tasks = [{ run: "echo {item}", cpus: "{item}", each: { stream: "lines" } }];
    const bad = submit(whole(document(randomUUID(), { tasks }), { group: 0, items: ["many"] }));
    await expect(bad).rejects.toThrow();
    expect(state.nextRun).toBe(1);
    const good = submit(whole(document(randomUUID(), { tasks }), { group: 0, items: ["1"] }));
    expect(await good).toEqual({ run: 1, total: 1 });
  });

  it("a request that is repeated while the first still sends its items joins it, and whoever is first at the end ends both", async () => {
    const uuid = randomUUID();
    const [first, second] = [request(), request()];
    const answers = [submit(first.lines), submit(second.lines)];
    first.send(document(uuid), { group: 0, items: items(0, 3000) });
    await settled();
    // the same items in other portions, and more of them
    second.send(document(uuid), { group: 0, items: items(0, 10) }, { group: 0, items: items(10, 5000) });
    second.end();
    expect(await answers[1]).toEqual({ run: 1, total: 5000 });
    first.send({ group: 0, items: items(3000, 5000) });
    first.end();
    expect(await answers[0]).toEqual({ run: 1, total: 5000 });
    expect([...state.runs.keys()]).toEqual([1]);
    expect(textsOf(1)).toEqual(items(0, 5000));
  });

  it("the first request is cut: the one that joined it goes on; with the last of them the draft goes", async () => {
    const uuid = randomUUID();
    const [first, second] = [request(), request()];
    const cut = submit(first.lines);
    first.send(document(uuid), { group: 0, items: items(0, 100) });
    const joined = submit(second.lines);
    second.send(document(uuid));
    await settled();
    first.cut();
    await expect(cut).rejects.toMatchObject({ code: "bad-request" });
    expect(state.drafts.size).toBe(1);
    second.send({ group: 0, items: items(0, 200) });
    second.end();
    expect(await joined).toEqual({ run: 1, total: 200 });
    expect(textsOf(1)).toEqual(items(0, 200));

    const alone = request();
    const lost = submit(alone.lines);
    alone.send(document(randomUUID()), { group: 0, items: ["a"] });
    await settled();
    expect(state.drafts.size).toBe(1);
    alone.cut();
    await expect(lost).rejects.toMatchObject({ code: "bad-request" });
    expect(state.drafts.size).toBe(0);
  });

  it("another document under the same uuid is refused, while the first is a draft and after", async () => {
    const uuid = randomUUID();
    const first = request();
    const answer = submit(first.lines);
    first.send(document(uuid), { group: 0, items: ["a"] });
    await settled();
    const other = whole(document(uuid, { name: "other" }), { group: 0, items: ["a"] });
    await expect(submit(other)).rejects.toMatchObject({ code: "uuid-taken", facts: { uuid, run: 1 } });
    first.end();
    expect(await answer).toEqual({ run: 1, total: 1 });
    const later = whole(document(uuid, { environment: { A: "1" } }), { group: 0, items: ["a"] });
    await expect(submit(later)).rejects.toMatchObject({ code: "uuid-taken", facts: { uuid, run: 1 } });
    expect(await submit(whole(document(uuid), { group: 0, items: ["a"] }))).toEqual({ run: 1, total: 1 });
    expect([...state.runs.keys()]).toEqual([1]);
  });

  it("other items under the same uuid are refused: another one, one more, one less", async () => {
    const uuid = randomUUID();
    const refused = { code: "uuid-taken", facts: { uuid, run: 1 } };
    const variants = [["a", "x"], ["a", "b", "c"], ["a"]];
    const first = request();
    const answer = submit(first.lines);
    first.send(document(uuid), { group: 0, items: ["a", "b"] });
    await settled();
    for (const each of variants.filter(({ length }) => length < 3))
      await expect(submit(whole(document(uuid), { group: 0, items: each }))).rejects.toMatchObject(refused);
    first.end();
    expect(await answer).toEqual({ run: 1, total: 2 });
    for (const each of variants)
      await expect(submit(whole(document(uuid), { group: 0, items: each }))).rejects.toMatchObject(refused);
    expect(textsOf(1)).toEqual(["a", "b"]);
  });

  it("all of them hear of the same refusal, and a later try begins anew", async () => {
    const uuid = randomUUID();
    const bad = (): AsyncIterable<unknown> => whole(document(uuid), { group: 0, items: [] });
    const outcomes = await Promise.allSettled([submit(bad()), submit(bad()), submit(bad())]);
    expect(outcomes.map((each) => (each.status === "rejected" ? (each.reason as Error).message : "taken"))).toEqual(
      Array.from({ length: 3 }, () => expect.stringContaining("has no items")),
    );
    expect(state.drafts.size).toBe(0);
    expect(await submit(whole(document(uuid), { group: 0, items: ["a"] }))).toMatchObject({ total: 1 });
    expect(state.runs.size).toBe(1);
  });

  it("after a restart a repeated request is the run it was, and another body is refused", async () => {
    const [committed, cut] = [randomUUID(), randomUUID()];
    const body = (): AsyncIterable<unknown> => whole(document(committed), { group: 0, items: ["a", "b"] });
    const { run } = await submit(body());
    const half = request();
    const lost = submit(half.lines);
    half.send(document(cut), { group: 0, items: ["a"] });
    await settled();
    half.cut();
    await expect(lost).rejects.toMatchObject({ code: "bad-request" });
    await journal.close();
    await start();
    expect(await submit(body())).toEqual({ run, total: 2 });
    const other = whole(document(committed), { group: 0, items: ["a", "c"] });
    await expect(submit(other)).rejects.toMatchObject({ code: "uuid-taken" });
    expect(await submit(whole(document(cut), { group: 0, items: ["c"] }))).toMatchObject({ total: 1 });
    expect(state.runs.size).toBe(2);
  });

  it("a run whose details have moved to disk is known by them", async () => {
    const uuid = randomUUID();
    const body = (...texts: string[]): AsyncIterable<unknown> => whole(document(uuid), { group: 0, items: texts });
    const { run } = await submit(body("a", "b"));
    const ended = state.runs.get(run)!;
    state.archived.set(run, summarise(ended, await writeArchive(home, ended)));
    state.runs.delete(run);
    expect(await submit(body("a", "b"))).toEqual({ run, total: 2 });
    await expect(submit(body("a", "x"))).rejects.toMatchObject({ code: "uuid-taken" });
    expect(state.runs.size).toBe(0);
  });

  it("runs of an earlier version, which kept no digest, are known by their uuid alone", async () => {
    const uuid = randomUUID();
    const { run } = await submit(whole(document(uuid), { group: 0, items: ["a"] }));
    state.runs.get(run)!.digest = "";
    expect(await submit(whole(document(uuid, { name: "x" }), { group: 0, items: ["b"] }))).toEqual({ run, total: 1 });
  });
});

describe("row 001-8: formulas in amounts", () => {
  const amounts = (cpus: string, more: object = {}): object =>
    document(randomUUID(), { tasks: [{ run: "true", each: { stream: "json" }, cpus, ...more }] });

  it("each task asks for what its item says", async () => {
    const { run } = await submit(whole(amounts("{item.n * 2} + 1"), { group: 0, items: [{ n: 1 }, { n: 3 }] }));
    const { rowShapes } = state.runs.get(run)!.groups[0]!;
    expect([0, 1].map((row) => rowShapes!.at(row).resources["cpus"])).toEqual([3 * FRACTION, 7 * FRACTION]);
  });

  it("a value that is no number is refused with key, formula and item, and nothing is submitted", async () => {
    const given = submit(whole(amounts("{item.n * 2} + 1"), { group: 0, items: [{ n: 1 }, { n: "7; rm" }] }));
    await expect(given).rejects.toMatchObject({
      code: "bad-value",
      facts: {
        detail: expect.stringMatching(/^item 1 .*cpus: \{item\.n \* 2\} \+ 1: item\.n is "7; rm", not a number/),
      },
    });
    expect(state.runs.size).toBe(0);
  });

  it("every attempt must fit somewhere, with items and without", async () => {
    const given = submit(
      whole(amounts("{item.n * attempt}", { retries: 2 }), { group: 0, items: [{ n: 2 }, { n: 3 }] }),
    );
    await expect(given).rejects.toMatchObject({
      code: "cannot-fit",
      facts: { task: "1 of 'run', attempt 3,", resource: "cpus", amount: "9", largest: "8" },
    });
    const one = document(randomUUID(), { tasks: [{ name: "a", run: "true", cpus: "{attempt * 3}", retries: 2 }] });
    await expect(submit(whole(one))).rejects.toMatchObject({ code: "cannot-fit", facts: { task: "'a', attempt 3," } });
  });
});

describe("mem: auto", () => {
  it("begins with a share of a node", async () => {
    const { run } = await submit(
      whole(document(randomUUID(), { tasks: [{ run: "true", mem: "auto" }, { run: "x" }] })),
    );
    const [first, second] = state.runs.get(run)!.groups;
    expect(first!.shape.resources).toEqual({ cpus: FRACTION, mem: 3 * 2 ** 30 });
    expect(second!.shape.resources).toEqual({ cpus: FRACTION });
  });

  it("lists that wait for each other item by item are matched before the commit, and again after a restart", async () => {
    const tasks = [
      { name: "a", run: "true", each: { stream: "lines" } },
      { name: "b", run: "true", each: { stream: "lines" }, after: { a: "same" } },
    ];
    const texts = items(0, 5000);
    const send = (second: readonly string[]) =>
      submit(whole(document(randomUUID(), { tasks }), { group: 0, items: texts }, { group: 1, items: second }));
    await expect(send([...texts.slice(1), "other"])).rejects.toMatchObject({
      code: "bad-value",
      facts: { where: "tasks.b", key: "after", detail: 'a has no item "other", which b has' },
    });
    expect([state.runs.size, state.drafts.size]).toEqual([0, 0]);
    const { run } = await send(texts.toReversed());
    await send(texts);
    const kinds = (): unknown[] => [run, run + 1].map((id) => state.runs.get(id)!.groups[1]!.links[0]!.pairing.kind);
    expect(kinds()).toEqual(["permuted", "alike"]);
    await journal.close();
    await start();
    expect(kinds()).toEqual(["permuted", "alike"]);
  });
});
