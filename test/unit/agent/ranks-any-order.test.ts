import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ending, NO_CODE } from "../../../src/core/events.ts";
import { endRank, NAME, type RankNode, RESOURCES, startNode, take, write } from "./rank-nodes.ts";

/** One agent that hears everything in any order, twice, too late, or about an attempt that it does not have. */

type Step =
  | { readonly does: "take" | "kept" | "over" | "stop" | "supersede"; readonly attempt: number }
  | { readonly does: "done" | "rank-ends"; readonly code: number }
  | { readonly does: "drain"; readonly now: boolean }
  | { readonly does: "serve" | "free" | "flush" | "write" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    does: fc.constantFrom("take" as const, "kept" as const, "over" as const, "stop" as const, "supersede" as const),
    attempt: fc.constantFrom(1, 1, 2),
  }),
  fc.record({ does: fc.constantFrom("done" as const, "rank-ends" as const), code: fc.constantFrom(0, 0, 7) }),
  fc.record({ does: fc.constant("drain" as const), now: fc.boolean() }),
  fc.record({ does: fc.constantFrom("serve" as const, "free" as const, "flush" as const, "write" as const) }),
);

const done = (node: RankNode, attempt: number, code: number): void =>
  node.parts.othersDone({ t: "ranks-done", ...NAME, attempt, ending: Ending.EXIT, code, detail: "elsewhere" });

const endOne = (node: RankNode, code: number): void => {
  const [first] = node.live;
  if (first === undefined) return;
  const [task, wanted] = first;
  endRank(node, task, wanted.ending === Ending.EXIT ? { ending: Ending.EXIT, code } : wanted);
};

const perform = (node: RankNode, place: number, given: Step, foreign: { free(): void }): void => {
  const { parts } = node;
  if (given.does === "take") {
    // repeated while it is here, or a later one: the server assigns no attempt twice
    const last = Math.max(0, ...node.taken);
    const isHere = [...parts.own(), ...parts.others()].some(({ attempt }) => attempt === given.attempt);
    if (isHere || given.attempt > last) take(node, place, given.attempt);
  } else if (given.does === "kept") {
    // the server acknowledges what it heard
    if (node.sent.some((message) => message.t === "ranks-ended" && message.attempt === given.attempt))
      parts.kept(1, 0, given.attempt);
  } else if (given.does === "over") parts.over(1, 0, given.attempt);
  else if (given.does === "stop") parts.stop(1, 0, given.attempt, false);
  else if (given.does === "supersede") parts.stop(1, 0, given.attempt, true);
  else if (given.does === "done") {
    if (place === 0) for (const attempt of [1, 2]) done(node, attempt, given.code);
  } else if (given.does === "rank-ends") endOne(node, given.code);
  else if (given.does === "drain") parts.drain(given.now, "its pilot ends");
  else if (given.does === "serve") parts.serve();
  else if (given.does === "free") foreign.free();
  else if (given.does === "flush") node.flushes.shift()?.();
  else for (const task of node.live.keys()) write(node, task);
};

/** Everything under way comes to its end, except the attempts. */
const runOut = (node: RankNode, place: number): void => {
  for (let before = ""; ;) {
    node.parts.serve();
    while (node.live.size > 0) endOne(node, 0);
    if (place === 0) for (const attempt of [1, 2]) done(node, attempt, 0);
    while (node.flushes.length > 0) node.flushes.shift()!();
    for (const message of node.sent) if (message.t === "ranks-ended") node.parts.kept(1, 0, message.attempt);
    const now = JSON.stringify([node.parts.size, node.started.length, node.results.length, node.sent.length]);
    if (now === before) return;
    before = now;
  }
};

describe("a part that hears anything in any order", () => {
  it("gives every attempt one result at most, and has all slots free when its attempts are over", () => {
    fc.assert(
      fc.property(fc.constantFrom(0, 1), fc.nat(2), fc.array(step, { maxLength: 30 }), (place, busy, steps) => {
        const node = startNode();
        const held = Array.from({ length: busy }, () => node.pool.allocate(RESOURCES)!);
        const foreign = {
          free: (): void => {
            const slot = held.pop();
            if (slot !== undefined) node.pool.release(slot);
          },
        };
        take(node, place);
        for (const each of steps) perform(node, place, each, foreign);
        while (held.length > 0) foreign.free();
        runOut(node, place);

        const isLeft = steps.some(({ does }) => ["take", "over", "supersede"].includes(does));
        const returned = node.sent.filter(({ t }) => t === "returned").length;
        const ended = node.sent.filter(({ t }) => t === "ranks-ended").length;
        for (const attempt of [1, 2]) {
          expect(node.results.filter((result) => result.attempt === attempt).length).toBeLessThanOrEqual(1);
          const told = node.sent.filter((message) => message.t === "ranks-ended" && message.attempt === attempt);
          expect(told.length).toBeLessThanOrEqual(1);
        }
        // nobody took the attempt away: it has its result, was given back, or its end here was reported
        if (!isLeft) expect(node.results.length + returned + ended).toBe(1);
        if (place === 1) expect([node.results, returned]).toEqual([[], 0]);
        else expect(ended).toBe(0);

        for (const attempt of [1, 2]) node.parts.over(1, 0, attempt);
        runOut(node, place);
        expect([node.parts.size, node.parts.waiting, node.pool.size]).toEqual([0, false, 0]);
        expect([node.outputs.size, node.parts.own(), node.parts.others(), node.parts.unheard()]).toEqual([
          0,
          [],
          [],
          [],
        ]);
      }),
      { numRuns: 400 },
    );
  });

  it("tells the first failure, though others follow", () => {
    const head = startNode();
    take(head, 0);
    head.parts.serve();
    endOne(head, 7);
    done(head, 1, 3);
    head.parts.drain(true, "its pilot ends");
    expect([...head.live.values()]).toEqual([{ ending: Ending.CANCELED, code: NO_CODE }]);
    endOne(head, 0);
    expect(head.results).toMatchObject([{ ending: Ending.EXIT, code: 7, detail: "rank 0 on a: exit code 7" }]);
    expect([head.parts.size, head.pool.size]).toEqual([0, 0]);
  });
});
