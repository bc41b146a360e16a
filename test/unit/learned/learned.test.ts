import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Identities } from "../../../src/learned/identities.ts";
import { createLearned } from "../../../src/learned/learned.ts";
import { Template, Templates } from "../../../src/learned/templates.ts";
import { WINDOW, Window, quantileOf } from "../../../src/learned/window.ts";

describe("identities", () => {
  it("remember the last success of each, up to a limit: the oldest go first, whoever succeeds again is new again", () => {
    const successes = fc.array(
      fc.record({ lo: fc.integer({ min: 0, max: 40 }), hi: fc.integer({ min: 0, max: 2 }), ms: fc.nat(1e6) }),
      { maxLength: 400 },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.constantFrom(1, 97), successes, (limit, stride, all) => {
        const identities = new Identities(limit);
        const model = new Map<string, { ms: number; at: number }>();
        for (const [at, each] of all.entries()) {
          // strides put many into few places of the index
          const [lo, hi] = [each.lo * stride * 512, each.hi];
          identities.set(lo, hi, each.ms, at, at);
          model.delete(`${lo}/${hi}`);
          model.set(`${lo}/${hi}`, { ms: each.ms, at });
          if (model.size > limit) model.delete(model.keys().next().value!);
        }
        expect(identities.size).toBe(model.size);
        expect([...identities.oldestFirst()].map((entry) => identities.hashOf(entry).join("/"))).toEqual([
          ...model.keys(),
        ]);
        for (const [key, { ms, at }] of model) {
          const [lo, hi] = key.split("/").map(Number);
          const entry = identities.find(lo!, hi!);
          expect([identities.tookMs(entry), identities.peak(entry), identities.at(entry)]).toEqual([
            Math.fround(ms),
            at,
            at,
          ]);
        }
        for (let lo = 0; lo < 41; lo += 1)
          if (!model.has(`${lo * stride * 512}/0`)) expect(identities.find(lo * stride * 512, 0)).toBe(-1);
      }),
    );
  });

  it("a million and their templates cost at most 64 MB", () => {
    const learned = createLearned();
    for (let i = 0; i < 1_100_000; i += 1)
      learned.record(Math.floor(i / 40), { lo: Math.imul(i, 0x9e3779b1) >>> 0, hi: i }, i, i % 2 === 0 ? i : null, i);
    expect(learned.identities.size).toBe(1_000_000);
    expect(learned.bytes).toBeLessThanOrEqual(64_000_000);
    expect(learned.identities.at(learned.identities.oldestFirst().next().value!)).toBe(100_000);
  });
});

describe("a window", () => {
  it("has the mean and the quantiles of the last 100", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1e9), { maxLength: 350 }), (all) => {
        const window = new Window();
        for (const value of all) window.add(value);
        const kept = all.slice(-WINDOW).map(Math.fround);
        expect([...window.values()]).toEqual(kept);
        expect(window.last).toBe(kept.at(-1) ?? -1);
        expect(window.mean).toBeCloseTo(
          kept.length === 0 ? -1 : kept.reduce((sum, each) => sum + each, 0) / kept.length,
          0,
        );
        const sorted = kept.toSorted((a, b) => a - b);
        expect(window.quantile(0)).toBe(sorted[0] ?? -1);
        expect(window.quantile(1)).toBe(sorted.at(-1) ?? -1);
        for (const q of [0.1, 0.5, 0.9]) {
          const value = window.quantile(q);
          if (kept.length === 0) continue;
          expect(kept.filter((each) => each <= value).length).toBeGreaterThanOrEqual(Math.floor(q * (kept.length - 1)));
          expect(kept.filter((each) => each >= value).length).toBeGreaterThanOrEqual(
            Math.floor((1 - q) * (kept.length - 1)),
          );
        }
      }),
    );
    expect(quantileOf([10, 20], 0.5)).toBe(15);
  });
});

describe("templates", () => {
  it("take no more bytes than they may: those that learned nothing for longest go first", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.array(fc.nat(12), { maxLength: 300 }), (room, all) => {
        const limit = room * new Template(0).bytes;
        const templates = new Templates(limit);
        for (const key of all) templates.add(key, key, -1);
        const order = [...templates.oldestFirst()].map(({ key }) => key);
        const recent = [...new Set(all.toReversed())].toReversed();
        expect(recent.slice(recent.length - order.length)).toEqual(order);
        const bytes = [...templates.oldestFirst()].reduce((sum, each) => sum + each.bytes, 0);
        expect(templates.bytes).toBe(bytes);
        if (templates.size > 1) expect(bytes).toBeLessThanOrEqual(limit);
        if (all.length > 0) expect(order.at(-1)).toBe(all.at(-1));
      }),
    );
  });
});
