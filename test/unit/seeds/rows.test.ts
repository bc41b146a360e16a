import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

/** Which rows of the seeds' audit have a test that says so in its title: "row 001-19: …", "rows 001-37 and 001-69 to 001-76: …". */

const TESTS = join(import.meta.dirname, "..", "..");
const THIS = "unit/seeds/rows.test.ts";

const upTo = (last: number, from = 1): number[] => Array.from({ length: last - from + 1 }, (_, at) => from + at);

const rowsNamed = (seed: string): Set<number> => {
  const named = new Set<number>();
  for (const name of readdirSync(TESTS, { recursive: true, encoding: "utf8" })) {
    // a suite that is run by several tests has its titles in a file of its own
    if (!name.endsWith(".ts") || name === THIS) continue;
    for (const [, title] of readFileSync(join(TESTS, name), "utf8").matchAll(/["`]rows? (\d{3}-\d+\b[^:]*):/g))
      for (const [, of, from, to = from] of title!.matchAll(/\b(\d{3})-(\d+)(?: to \1-(\d+))?\b/g))
        if (of === seed) for (const row of upTo(Number(to), Number(from))) named.add(row);
  }
  return named;
};

it("every row of seed 001 is in the title of a test", () => {
  const named = rowsNamed("001");
  expect(upTo(93).filter((row) => !named.has(row))).toEqual([]);
});
