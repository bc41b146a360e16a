import { readFileSync } from "node:fs";
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
