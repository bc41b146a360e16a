import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RunView, StatusView, TaskView } from "../../src/api/schemas.ts";
import { type EncodedEvent, encodeEvent, packr } from "../../src/core/codec.ts";
import { openJournal } from "../../src/journal/index.ts";
import { group, spec } from "../unit/core/model.ts";
import { endedPart, joinAs } from "./protocol-peer.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/**
 * Numbers and shapes that no agent of ours sends, from one that has the token; and some that an earlier version let in.
 */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
  await mkdir(slipway.home, { recursive: true });
  // no pilots of its own: the tests play the agents
  await writeFile(
    join(slipway.home, "clusters.yaml"),
    "clusters: { local: { type: local, queues: { default: { fleet: { max: 0 } } } } }\n",
  );
});

afterEach(() => slipway.cleanup());

/** A message, and how the log names what is wrong with it. */
const malformed = (run: number): [message: object, field: string][] => [
  ...(
    [
      [{ details: 5 }, "parts[0].details"],
      [{ details: [[0, 7]] }, "parts[0].details[0][1]"],
      [{ details: [[9, "x"]] }, "parts[0].details[0][0]"],
      [{ started: 9e15 }, "parts[0].started"],
      [{ finished: Number.NaN }, "parts[0].finished"],
      [{ outAt: 1e300 }, "parts[0].outAt"],
      [{ outBytes: -5 }, "parts[0].outBytes"],
      [{ attempt: 70_000 }, "parts[0].attempt"],
      [{ ending: 200 }, "parts[0].ending"],
      [{ code: "x" }, "parts[0].code"],
      [{ n: 4e9 }, "parts"],
      [{ from: 4e9 }, "parts[0].rows"],
      [{ from: undefined, rows: Buffer.from([1, 2]) }, "parts[0]"],
    ] as [object, string][]
  ).map(([more, field]): [object, string] => [{ t: "results", seq: 1, parts: [endedPart(run, more)] }, field]),
  [{ t: "results", seq: 1, parts: [null] }, "parts[0]"],
  [{ t: "results", seq: 1, parts: 7 }, "parts"],
  [{ t: "returned", parts: [{ run, ranges: [0, 4_000_000_000] }] }, "parts[0].ranges"],
  [{ t: "returned", parts: [{ run, ranges: [0] }] }, "parts[0].ranges"],
  [{ t: "progress", tasks: [{ run, row: 0, attempt: 1, started: 9e15, outAt: -1 }] }, "tasks[0].started"],
  [
    { t: "ranks-ended", run, row: 0, attempt: 1, ending: 0, code: 0, detail: "", outAt: 0, outBytes: -1, errBytes: 0 },
    "outBytes",
  ],
];

/** Waits for a word in the server's log after a position. */
const logged = (from: number, word: string): Promise<void> =>
  vi.waitFor(async () => expect((await slipway.serverLog()).slice(from)).toContain(word), { timeout: 30_000 });

const exported = async (): Promise<{ type: string; parts?: unknown }[]> =>
  (await slipway.run(["journal", "export"])).stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { type: string; parts?: unknown });

describe("an agent that has the token", () => {
  it("is cut off for every malformed message, with its field in the log; nothing is journaled, and the home starts again", async () => {
    expect((await slipway.run(["up"])).status).toBe(0);
    const { run } = await slipway.json<{ run: number }>(["submit", "--array", "1-3", "--", "true"]);
    const uuid = "11111111-2222-4333-8444-555555555555";
    for (const [message, field] of malformed(run)) {
      const peer = await joinAs(slipway.home, { uuid });
      await peer.saw("assign");
      const before = (await slipway.serverLog()).length;
      peer.channel.send(message as never);
      await peer.closed;
      await logged(before, field);
    }
    // a hello is a message too
    for (const [change, field] of [
      [{ resources: { cpus: -1 } }, "resources"],
      [{ held: 5 }, "held"],
      [{ endsInMs: 1e300 }, "endsInMs"],
    ] as const) {
      const before = (await slipway.serverLog()).length;
      await (
        await joinAs(slipway.home, { uuid, ...change } as never)
      ).closed;
      await logged(before, field);
    }
    // what it had, and did not report when it came back, was given back each time: three tasks, nothing else
    const told = (await exported()).filter(({ type }) => /^tasks\.(ended|returned)|^ranks/.test(type));
    expect(new Set(told.map(({ type, parts }) => JSON.stringify({ type, parts })))).toEqual(
      new Set([JSON.stringify({ type: "tasks.returned", parts: [{ run, ranges: [0, 1, 1, 1, 2, 1] }] })]),
    );
    expect((await slipway.run(["status"])).status).toBe(0);
    expect((await slipway.run(["down", "--now"])).status).toBe(0);
    expect((await slipway.run(["up"])).status).toBe(0);
    const peer = await joinAs(slipway.home, { uuid });
    const { attempts } = await peer.saw("assign");
    peer.channel.send({ t: "results", seq: 1, parts: [endedPart(run, { n: 3, attempt: attempts as number })] });
    await slipway.json(["wait", String(run)]);
    expect((await slipway.json<RunView>(["show", String(run)])).counts).toEqual({ DONE: 3 });
    peer.channel.send({ t: "bye", reason: "test" });
    await peer.closed;
  });
});

const TASKS_ENDED = 12;

/** What an earlier server let in: the end of the first task of run 1. */
const endedEvent = (seq: number, more: object): EncodedEvent => ({
  type: TASKS_ENDED,
  payload: packr.pack({ at: 6, agent: 1, seq, parts: [endedPart(1, more)] }),
});

const history = (...ends: EncodedEvent[]): EncodedEvent[] => [
  encodeEvent({ type: "run.opened", at: 1, run: 1, uuid: "u", spec: spec([group("a", 3)]) }),
  encodeEvent({ type: "run.committed", at: 2, run: 1 }),
  encodeEvent({
    type: "agent.joined",
    at: 3,
    agent: 1,
    uuid: "11111111-2222-4333-8444-555555555555",
    pilot: 0,
    host: "h",
    version: "1",
    resources: { cpus: 10_000 },
    output: "/nonexistent",
    seq: 0,
  }),
  encodeEvent({ type: "tasks.assigned", at: 4, agent: 1, parts: [{ run: 1, ranges: [0, 3] }] }),
  ...ends,
  encodeEvent({ type: "tasks.returned", at: 7, agent: 1, parts: [{ run: 1, ranges: [1, 4_000_000_000] }] }),
];

const writeHistory = async (events: readonly EncodedEvent[]): Promise<void> => {
  const dir = join(slipway.home, "journal");
  await mkdir(dir, { recursive: true });
  const journal = await openJournal({ dir, epoch: 1 }, () => undefined);
  for (const { type, payload } of events) journal.append(type, payload);
  await journal.close();
};

describe("a journal of an earlier version", () => {
  it("with an event that cannot be applied is refused by `up`, by name; repair sets it aside, and the next `up` starts", async () => {
    await writeHistory(history(endedEvent(1, { details: 5 })));
    const up = await slipway.run(["up"]);
    expect(up.status).toBe(3);
    expect(up.stderr).toMatch(/00000001-00000001\.log at offset \d+: record 5, tasks\.ended: parts\[0\]\.details is 5/);
    const verify = await slipway.run(["journal", "verify"]);
    expect([verify.status, verify.stdout]).toEqual([1, expect.stringContaining("parts[0].details")]);
    const repair = await slipway.run(["journal", "repair"]);
    expect(repair.status).toBe(0);
    const file = /^\s*(\/.*event-5.*\.json)$/m.exec(repair.stdout)?.[1];
    const kept = JSON.parse(await readFile(file!, "utf8")) as { record: number; event: { type: string } };
    expect(kept).toMatchObject({ record: 5, type: TASKS_ENDED, event: { type: "tasks.ended" } });
    expect((await slipway.run(["up"])).status).toBe(0);
    expect((await slipway.json<RunView>(["show", "1"])).counts).not.toHaveProperty("DONE");
    expect((await slipway.run(["journal", "verify"])).status).toBe(0);
    expect((await slipway.run(["down", "--now"])).status).toBe(0);
    expect(await slipway.json(["journal", "repair"])).toMatchObject({ changed: false, setAside: [] });
  });

  it("with odd numbers starts, and /status, /runs and tasks are shown without them", async () => {
    const odd = { started: 9e15, finished: Number.NaN, outAt: 1e300, outBytes: -5, errBytes: 1e300 };
    await writeHistory(history(endedEvent(1, odd)));
    expect((await slipway.run(["up"])).status).toBe(0);
    for (const words of [["status"], ["list"], ["show", "1"], ["show", "1.0"]])
      expect((await slipway.run(words)).status, words.join(" ")).toBe(0);
    const { runs } = await slipway.json<StatusView>(["status"]);
    const task = await slipway.json<TaskView>(["show", "1.0"]);
    expect(task).toMatchObject({ state: "DONE", stdoutBytes: null, stderrBytes: null });
    // left out, or put in order with the other times
    for (const time of [...runs, ...task.attempts].flatMap(({ started, finished }) => [started, finished]))
      if (time !== null) expect(Date.parse(time)).toBeLessThanOrEqual(Date.now() + 1000);
    expect((await slipway.run(["logs", "1.0"])).stderr).not.toMatch(/should not happen/);
    expect((await slipway.run(["journal", "compact"])).status).toBe(0);
    expect((await slipway.run(["down", "--now"])).status).toBe(0);
    expect((await slipway.run(["up"])).status).toBe(0);
    expect((await slipway.run(["status"])).status).toBe(0);
  });
});
