import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { FRACTION } from "../../src/core/resources.ts";
import type { AgentMessage, Hello } from "../../src/protocol/messages.ts";
import { endedPart, joinAs } from "../cli/protocol-peer.ts";
import type { World } from "./world.ts";

/**
 * What no agent says, from one with a good token: the server drops it or ignores it, and nobody else notices. None of
 * it is true of any attempt, so whatever the server makes of it, no task may suffer from it.
 */

/** A run that the server has, and an attempt that the liar really got, if any. */
interface Facts {
  readonly run: number;
  readonly row: number;
  readonly attempt: number;
}

/** An attempt that nobody has. */
const NEVER = 60_000;
const HUGE = 4_000_000_000;

const part = ({ run }: Facts, change: object): object => endedPart(run, { attempt: NEVER, ...change });
const results = (facts: Facts, change: object, seq = 1): object => ({
  t: "results",
  seq,
  parts: [part(facts, change)],
});
const ranksEnded = ({ run }: Facts, change: object): object => ({
  t: "ranks-ended",
  run,
  row: 0,
  attempt: NEVER,
  ending: 0,
  code: 0,
  detail: "",
  outAt: -1,
  outBytes: 0,
  errBytes: 0,
  ...change,
});

const WORDS = {
  "details are a number": (facts: Facts) => [results(facts, { details: 5 })],
  "details are no pairs": (facts: Facts) => [results(facts, { details: [5, null, "text"] })],
  "a detail is a map": (facts: Facts) => [results(facts, { details: [[0, { length: 1e9 }]] })],
  "results are null": () => [{ t: "results", seq: 1, parts: [null] }],
  "a column is short": (facts: Facts) => [results(facts, { n: 3, code: new Uint8Array(5) })],
  "more results than anything": (facts: Facts) => [results(facts, { n: HUGE })],
  "results of no run": (facts: Facts) => [results(facts, { run: 1.5 }), results(facts, { run: -1 })],
  "results long after": (facts: Facts) => [results(facts, {}, Number.MAX_SAFE_INTEGER)],
  "a time beyond time": (facts: Facts) => [
    results(facts, { started: 9e15, finished: Number.NaN, outAt: 1e300, outBytes: -1e300 }),
  ],
  "a range of four billion": ({ run }: Facts) => [{ t: "returned", parts: [{ run, ranges: [0, HUGE] }] }],
  "half a range": ({ run }: Facts) => [{ t: "returned", parts: [{ run, ranges: [0] }] }],
  "ranges that never end": ({ run }: Facts) => [
    { t: "returned", parts: [{ run, ranges: Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? i : 0xffff_ffff)) }] },
  ],
  "a start beyond time": ({ run, row, attempt }: Facts) =>
    [9e15, -1, Number.NaN, 1e300].map((started) => ({
      t: "progress",
      tasks: [{ run, row, attempt, started, outAt: 1e300 }],
    })),
  "ranks of nobody": (facts: Facts) => [
    ranksEnded(facts, { outAt: Number.NaN }),
    ranksEnded(facts, { row: HUGE, outBytes: 1e300 }),
  ],
  "no message at all": () => [5, null, [], "hello", { t: "no such word" }, { t: 5 }, { t: "__proto__" }],
  "a second hello": () => [{ t: "hello" }],
} as const satisfies Record<string, (facts: Facts) => unknown[]>;

/** Claims in a hello that nobody makes. */
const HELLOS = {
  "a hello of many held tasks": {
    held: [{ run: 1, rows: [HUGE, 0, 5], attempts: [1] }],
    parts: [{ run: HUGE, rows: [1], attempts: [1, 2, 3] }],
  },
  "a hello from the end of time": { endsInMs: 1e300, host: "a\nb\u001b[31m", epoch: 0xffff_ffff },
  "a hello with everything": { resources: { cpus: Number.MAX_SAFE_INTEGER, "": 1, constructor: 5 } },
} as const satisfies Record<string, Partial<Hello>>;

export type Lie = keyof typeof WORDS | keyof typeof HELLOS;
export const LIES = [...Object.keys(WORDS), ...Object.keys(HELLOS)] as Lie[];

/** How long to wait for a task, if one is waiting. */
const GIVEN_MS = 300;
/** How long a server may take to object to a message. */
const HEARD_MS = 250;

const within = async <T>(ms: number, what: Promise<T>): Promise<T | undefined> => {
  const limit = new AbortController();
  try {
    return await Promise.race([what.catch(() => undefined), sleep(ms, undefined, { signal: limit.signal })]);
  } finally {
    limit.abort();
  }
};

/** Only a server that hangs makes somebody wait this long. */
const HANG_MS = 30_000;

/** Tells one lie and leaves in good order, so that nothing waits for the liar. */
export const lie = async (world: World, kind: Lie, run: number): Promise<void> => {
  const told = await within(
    HANG_MS,
    tell(world, kind, run).then(() => true),
  );
  if (told !== true) throw new Error(`the server does not answer after a lie: ${kind}`);
  world.note(`an agent lied: ${kind}`);
};

const tell = async (world: World, kind: Lie, run: number): Promise<void> => {
  const uuid = randomUUID();
  const hello = kind in HELLOS ? HELLOS[kind as keyof typeof HELLOS] : {};
  const holds = kind === "a start beyond time";
  const peer = await joinAs(world.home, { uuid, resources: holds ? { cpus: FRACTION } : {}, ...hello });
  const welcome = await within(HEARD_MS * 10, peer.saw("welcome"));
  if (welcome !== undefined && kind in WORDS) {
    const given = holds ? await within(GIVEN_MS, peer.saw("assign")) : undefined;
    const first = given === undefined ? 1 : typeof given.attempts === "number" ? given.attempts : given.attempts[0]!;
    const facts = { run: given?.run ?? run, row: given?.ranges[0] ?? 0, attempt: first };
    for (const message of WORDS[kind as keyof typeof WORDS](facts)) peer.channel.send(message as AgentMessage);
    await within(HEARD_MS, peer.closed);
  }
  peer.channel.destroy("told");
  await peer.closed;
  // once more under its name: the server places again what it had, then it leaves
  const last = await joinAs(world.home, { uuid, resources: {} });
  if ((await within(HEARD_MS * 10, last.saw("welcome"))) !== undefined)
    last.channel.send({ t: "bye", reason: "the harness" });
  await within(HEARD_MS * 10, last.closed);
  last.channel.destroy("gone");
};
