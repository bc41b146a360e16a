import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply } from "../../../src/core/apply.ts";
import { decodeEvent, encodeEvent } from "../../../src/core/codec.ts";
import type { Event } from "../../../src/core/events.ts";
import { LAUNCH_STATES, type Launch, isFinalLaunch, mayAdvanceLaunch } from "../../../src/core/launch.ts";
import { createReplay, encodeState } from "../../../src/core/snapshot.ts";
import { NO_EFFECTS, type State, createState } from "../../../src/core/state.ts";

const plainPages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };
const noArchive = {
  restore: () => {
    throw new Error("nothing is archived here");
  },
};

const requested = (launch: number, at = 1000): Event => ({
  type: "launch.requested",
  at,
  launch,
  uuid: `u${launch}`,
  cluster: "hpc",
  user: "alice",
  jobName: `slipway_cmd-x-0000-${launch}`,
  directory: `/shared/${launch}`,
  files: { script: "s", options: ["-x"], stdout: "o", stderr: "e", exitCode: "c", nativeId: "n" },
  tokenHash: "00",
  about: { name: "x", type: "cmd", pool: "p", slots: 2, nodes: 1, image: "", command: ["true"], notes: ["rounded"] },
});

const id = fc.integer({ min: 1, max: 4 });
const text = fc.string({ maxLength: 8 });
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const event = fc.oneof(
  { weight: 1, arbitrary: id.map((launch) => requested(launch)) },
  { weight: 1, arbitrary: id.map((launch): Event => ({ type: "launch.removed", at: 3000, launch })) },
  {
    weight: 6,
    arbitrary: fc
      .record({
        launch: id,
        at: fc.integer({ min: 1001, max: 9999 }),
        state: some(fc.constantFrom(...LAUNCH_STATES)),
        nativeId: some(text),
        raw: some(text),
        reason: some(text),
        exitCode: some(fc.nat(255)),
        signal: some(fc.nat(64)),
        hosts: some(fc.array(text, { maxLength: 3 })),
        excerpt: some(text),
        cancelBy: some(text),
        cleaned: some(fc.constant(true)),
      })
      .map((facts): Event => {
        const known = Object.entries(facts).filter(([, value]) => value !== undefined);
        return { type: "launch.changed", ...Object.fromEntries(known) } as Event;
      }),
  },
);

const view = (state: State): unknown => ({
  next: state.nextLaunch,
  launches: [...state.launches],
  uuids: [...state.launchByUuid],
});

const replayOf = (events: readonly Event[], cut: number): State => {
  const first = createState();
  const feed = (state: State, list: readonly Event[]): void => {
    const replay = createReplay(state, plainPages, noArchive);
    for (const each of list) {
      const { type, payload } = encodeEvent(each);
      expect(decodeEvent(type, payload)).toEqual(each);
      replay(type, payload);
    }
  };
  feed(first, events.slice(0, cut));
  const second = createState();
  const replay = createReplay(second, plainPages, noArchive);
  for (const { type, payload } of encodeState(first, new Map(), plainPages)) replay(type, payload);
  feed(second, events.slice(cut));
  return second;
};

describe("launches", () => {
  it("rule 2: any history, replayed with a snapshot in its middle, gives the same launches; states only go forward", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), fc.nat(40), (events, cut) => {
        const state = createState();
        for (const each of events) {
          const launch = "launch" in each ? state.launches.get(each.launch) : undefined;
          const before = launch === undefined ? undefined : { ...launch };
          apply(state, each, NO_EFFECTS);
          if (before === undefined || each.type === "launch.removed") continue;
          const now = state.launches.get(before.id) as Launch;
          if (now.state !== before.state) expect(mayAdvanceLaunch(before.state, now.state)).toBe(true);
          if (isFinalLaunch(before.state))
            expect(now).toEqual({
              ...before,
              excerpt: now.excerpt,
              cancelAsked: now.cancelAsked,
              cancelBy: now.cancelBy,
              cleaned: now.cleaned,
            });
          expect(now.ended > 0).toBe(isFinalLaunch(now.state));
        }
        expect(view(replayOf(events, cut))).toEqual(view(state));
      }),
      { numRuns: 200 },
    );
  });

  it("rule 7: the same request applied twice is one launch, and its id is not given again", () => {
    const state = createState();
    apply(state, requested(7), NO_EFFECTS);
    apply(state, { type: "launch.changed", at: 2000, launch: 7, state: "running", nativeId: "12" }, NO_EFFECTS);
    apply(state, requested(7), NO_EFFECTS);
    expect(state.launches.get(7)).toMatchObject({ state: "running", nativeId: "12", started: 2000 });
    expect(state.launchByUuid.get("u7")).toBe(7);
    expect(state.nextLaunch).toBe(8);
    apply(state, { type: "launch.removed", at: 2000, launch: 7 }, NO_EFFECTS);
    expect(state.launches.size + state.launchByUuid.size).toBe(0);
    expect(state.nextLaunch).toBe(8);
  });
});
