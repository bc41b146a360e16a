import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type PostOutput, Refused, type StreamName } from "../../../../src/launch/stream/post-output.ts";
import { createSender, type Pause } from "../../../../src/launch/stream/sender.ts";
import type { Piece } from "../../../../src/launch/stream/unsent.ts";

/** What happens to a stream: something is written, or the current request or pause ends. */
type Step =
  | { readonly do: "push"; readonly stream: StreamName; readonly bytes: number }
  /** The server takes this much of the piece; the sender may not learn of it. */
  | { readonly do: "answer"; readonly take: number; readonly isLost: boolean }
  | { readonly do: "fail" }
  /** The server comes back without the last bytes it had. */
  | { readonly do: "forget"; readonly bytes: number }
  | { readonly do: "refuse" }
  | { readonly do: "rested" };

const STREAMS = ["stdout", "stderr"] as const;
const LIMITS = { held: 64, atOnce: 16 };
const MARK = /\n\[(\d+) bytes are in the job's own output file only\]\n/g;

/** Each byte shows its place, as far as letters can. */
const written = (from: number, length: number): string =>
  Array.from({ length }, (_, i) => String.fromCodePoint(97 + ((from + i) % 23))).join("");

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Request {
  readonly stream: StreamName;
  readonly piece: Piece;
  readonly answer: (size: number) => void;
  readonly fail: (error: Error) => void;
}

/** A server whose every answer is given by hand, and pauses that end on request. */
const byHand = () => {
  const kept = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  const under: { request?: Request | undefined; pause?: { end(): void } | undefined } = {};
  const counts = { requests: 0, pauses: 0, empty: 0, atOnce: 0, took: 0, closed: 0 };
  const post: PostOutput["post"] = (stream, piece) =>
    new Promise((resolve, reject) => {
      if (under.request !== undefined) counts.atOnce += 1;
      counts.requests += 1;
      if (piece.body.length === 0) counts.empty += 1;
      const done = <T>(end: (value: T) => void): ((value: T) => void) => {
        return (value) => {
          under.request = undefined;
          end(value);
        };
      };
      under.request = { stream, piece, answer: done(resolve), fail: done(reject) };
    });
  const pause = (): Pause => {
    counts.pauses += 1;
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      end = () => {
        under.pause = undefined;
        resolve();
      };
    });
    under.pause = { end };
    return { over, cut: end };
  };
  /** Like the real one: it takes no piece that begins after its end, and nothing that it already has. */
  const take = ({ stream, piece: { offset, body } }: Request, bytes: number): number => {
    const before = kept[stream];
    const part = body.subarray(0, bytes);
    if (offset <= before.length && offset + part.length > before.length)
      kept[stream] = Buffer.concat([before, part.subarray(before.length - offset)]);
    if (kept[stream].length > offset) counts.took += 1;
    return kept[stream].length;
  };
  const sender = createSender({ post, close: () => void (counts.closed += 1) }, { limits: LIMITS, pause });
  return { kept, under, counts, take, sender };
};

/** How much of the stream arrived, and how much was reported missing, from its beginning on. */
const accountFor = (text: string): { readonly reached: number; readonly isInOrder: boolean } => {
  let at = 0;
  let isInOrder = true;
  for (const [i, part] of text.split(MARK).entries()) {
    if (i % 2 === 1) at += Number(part);
    else {
      isInOrder &&= part === written(at, part.length);
      at += part.length;
    }
  }
  return { reached: at, isInOrder };
};

/** Without a line about a gap that had arrived only in part. */
const untorn = (text: string): string =>
  text.replace(/\n(?:\[[^\]]*\]?)?$/, (end, at: number) => (text[at - 1] === "]" ? end : ""));

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("push"), stream: fc.constantFrom(...STREAMS), bytes: fc.nat(40) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("answer"), take: fc.nat(20), isLost: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fail") }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("forget"), bytes: fc.integer({ min: 1, max: 10 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("rested") }) },
) as fc.Arbitrary<Step>;

type World = ReturnType<typeof byHand> & { readonly pushed: Record<StreamName, number> };

const apply = (world: World, now: Step): void => {
  const { kept, under, pushed, sender, take } = world;
  const { request } = under;
  if (now.do === "push") {
    sender.push(now.stream, Buffer.from(written(pushed[now.stream], now.bytes)));
    pushed[now.stream] += now.bytes;
  } else if (now.do === "rested") under.pause?.end();
  else if (request === undefined) return;
  else if (now.do === "answer") {
    const size = take(request, now.take);
    if (now.isLost) request.fail(new Error("the connection was cut"));
    else request.answer(size);
  } else if (now.do === "forget") {
    const before = kept[request.stream];
    const size = Math.max(0, before.length - now.bytes);
    // a line about a gap that was partly forgotten would no longer be readable
    const end = before.subarray(size).toString();
    if (/[^a-z]/.test(end) || /[^a-z]$/.test(before.subarray(0, size).toString()))
      return request.fail(new Error("busy"));
    kept[request.stream] = before.subarray(0, size);
    request.answer(size);
  } else request.fail(now.do === "refuse" ? new Refused("no") : new Error("busy"));
};

/** Ends requests and pauses as they come, until `isDone`. */
const serve = async (world: World, isDone: () => boolean): Promise<void> => {
  for (let i = 0; i < 1000 && !isDone(); i += 1) {
    const { request, pause } = world.under;
    if (request !== undefined) request.answer(world.take(request, Infinity));
    pause?.end();
    await turn();
  }
};

const play = async (steps: readonly Step[]): Promise<World> => {
  const world = { ...byHand(), pushed: { stdout: 0, stderr: 0 } };
  for (const now of steps) {
    apply(world, now);
    await turn();
  }
  return world;
};

const finish = async (world: World): Promise<boolean> => {
  let isDone = false;
  const done = world.sender.finish(600_000).then(() => void (isDone = true));
  await turn();
  await serve(world, () => isDone);
  if (isDone) await done;
  return isDone;
};

describe("a rank's output, whatever the server answers and in whatever order", () => {
  it("every byte arrives once and in order, or is counted as left out", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const world = await play(steps);
        const { counts, kept, pushed, under } = world;
        // it is over as soon as everything is sent, without a pause to wait for
        expect(await finish(world)).toBe(true);
        expect(under).toEqual({ request: undefined, pause: undefined });
        for (const stream of STREAMS)
          expect(accountFor(kept[stream].toString())).toEqual({ reached: pushed[stream], isInOrder: true });
        // a request always has something to send, only one is under way, and a pause follows one that achieved nothing
        expect(counts).toMatchObject({ empty: 0, atOnce: 0, closed: 1 });
        expect(counts.requests).toBeLessThanOrEqual(counts.took + counts.pauses);
      }),
      { numRuns: 300 },
    );
  });

  it("a refusal ends it at once, with a beginning of the output sent and no request after it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.array(step, { maxLength: 10 }), async (before, after) => {
        const world = await play(before);
        world.under.pause?.end();
        world.sender.push("stdout", Buffer.from(written(world.pushed.stdout, 1)));
        await turn();
        apply(world, { do: "refuse" });
        await turn();
        const { requests } = world.counts;
        for (const now of after) apply(world, now);
        let isDone = false;
        void world.sender.finish(600_000).then(() => void (isDone = true));
        await turn();
        expect(isDone).toBe(true);
        expect(world.counts.requests).toBe(requests);
        for (const stream of STREAMS) expect(accountFor(untorn(world.kept[stream].toString())).isInOrder).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it("out of time it is over, whatever is under way, and asks nothing more", async () => {
    const world = await play([{ do: "push", stream: "stdout", bytes: 5 }]);
    await world.sender.finish(0);
    expect(world.counts).toMatchObject({ requests: 1, closed: 1 });
    world.under.request?.fail(new Error("closed"));
    await turn();
    expect(world.counts).toMatchObject({ requests: 1, pauses: 0 });
  });
});
