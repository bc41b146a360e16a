import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { VERBS } from "../../../src/cli/verbs.ts";

/** docs/api.md says for every command which operation does the same, and names only operations that exist. */

const page = readFileSync(new URL("../../../docs/api.md", import.meta.url), "utf8");
const [, table = ""] = /## Commands and operations\n([\s\S]*?)\n## /.exec(page) ?? [];

it("every command is in the table of docs/api.md", () => {
  const named = [...table.matchAll(/^\| ([\w, ]+?) +\|/gm)].flatMap(([, verbs]) => verbs!.split(", "));
  expect(VERBS.map(({ name }) => name).filter((name) => !named.includes(name))).toEqual([]);
});

it("every operation in it is one of the API", () => {
  const operations = [...table.matchAll(/`(GET|POST|DELETE) (\/[\w{}/]+)`/g)];
  expect(operations.length).toBeGreaterThan(25);
  for (const [, method, path] of operations) expect(page).toContain(`### ${method} /api/v1${path}\n`);
});
