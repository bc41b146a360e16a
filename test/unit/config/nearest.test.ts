import * as fc from "fast-check";
import { expect, it } from "vitest";
import { distance, nearest, suggest } from "../../../src/config/nearest.ts";

const known = ["cpus", "gpus", "mem", "tmp", "time-limit", "time-request", "retries", "env"];

it.each([
  ["cpu", "cpus"],
  ["cpsu", "cpus"],
  ["CPUS", "cpus"],
  ["memm", "mem"],
  ["timelimit", "time-limit"],
  ["time_limit", "time-limit"],
  ["retires", "retries"],
])("%s means %s", (word, meant) => expect(nearest(word, known)).toBe(meant));

it.each(["", "x", "zz", "colour", "x".repeat(10_000)])("%s means nothing known", (word) => {
  expect(nearest(word, known)).toBeUndefined();
  expect(suggest(word, known)).toBe("");
});

it("distance is zero for the same word only, symmetric, and bounded", () => {
  const word = fc.string({ maxLength: 12 });
  fc.assert(
    fc.property(word, word, (a, b) => {
      const there = distance(a, b, 50);
      expect(there === 0).toBe(a === b);
      expect(distance(b, a, 50)).toBe(there);
      expect(there).toBeLessThanOrEqual(Math.max(a.length, b.length));
      expect(distance(a, b, 2)).toBe(Math.min(there, 3));
    }),
  );
});
