import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

/** Which rows of the seeds' audit have a test that says so in its title: "row 001-19: …", "rows 001-37 and 001-38: …". */

const TESTS = join(import.meta.dirname, "..", "..");
const THIS = "unit/seeds/rows.test.ts";

const rowsNamed = (seed: string): Set<number> => {
  const named = new Set<number>();
  for (const name of readdirSync(TESTS, { recursive: true, encoding: "utf8" })) {
    // a suite that is run by several tests has its titles in a file of its own
    if (!name.endsWith(".ts") || name === THIS) continue;
    for (const [, title] of readFileSync(join(TESTS, name), "utf8").matchAll(/["`]rows? (\d{3}-\d+\b[^:]*):/g))
      for (const [, of, row] of title!.matchAll(/\b(\d{3})-(\d+)\b/g)) if (of === seed) named.add(Number(row));
  }
  return named;
};

const upTo = (last: number, from = 1): number[] => Array.from({ length: last - from + 1 }, (_, at) => from + at);

it("every row of seed 001 that is the engine's, 001-1, 001-3 to 001-40 and 001-65, is in the title of a test", () => {
  const named = rowsNamed("001");
  // 001-2 and 001-41 to 001-93 are about tasks as jobs of their own
  const rows = [1, ...upTo(40, 3), 65];
  expect(rows.filter((row) => !named.has(row))).toEqual([]);
});
