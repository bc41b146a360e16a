import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Parameter, PARAMETERS } from "../../../src/wrap/plan/parameters.ts";

it("docs/dask.md tells of every parameter, its default and the key that it sets", () => {
  const text = readFileSync(join(import.meta.dirname, "..", "..", "..", "docs", "dask.md"), "utf8");
  for (const { name, default: value, dask } of PARAMETERS as readonly Parameter[]) {
    const line = text.split("\n").find((one) => one.startsWith(`| \`${name}\``));
    expect(line, name).toBeDefined();
    if (value !== undefined) expect(line).toContain(`\`${value}\``);
    if (dask !== undefined) expect(line).toContain(`\`${dask}\``);
  }
});

it("every row of the seed, 002-1 to 002-57 and 002-62, is in the title of a test", () => {
  const root = join(import.meta.dirname, "..", "..");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    /wrap.*\.test\.ts$/.test(name),
  );
  const titles = files.flatMap((name) =>
    readFileSync(join(root, name), "utf8")
      .split("\n")
      .filter((line) => /["`]rows? 002-\d/.test(line)),
  );
  const named = new Set(titles.flatMap((line) => [...line.matchAll(/\b002-(\d+)\b/g)].map(([, row]) => Number(row))));
  const rows = [...Array.from({ length: 57 }, (_, at) => at + 1), 62];
  expect(rows.filter((row) => !named.has(row))).toEqual([]);
});
