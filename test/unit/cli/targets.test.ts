import { expect, test } from "vitest";
import { resultTask } from "../../../src/cli/result.ts";
import { parseRun, parseTarget, parseWhole } from "../../../src/cli/targets.ts";
import { sampleRun } from "./sample.ts";

test("runs and tasks are read, everything else is refused by name", () => {
  expect(parseTarget("3")).toEqual({ run: 3 });
  expect(parseTarget("3.17")).toEqual({ run: 3, task: 17 });
  for (const text of ["", "x", "3.", ".3", "-1", "3.x", "3.1.2", "1e3", "99999999999999999"])
    expect(() => parseTarget(text)).toThrow(`'${text}' is neither a run (3) nor a task`);
  expect(parseRun("4")).toBe(4);
  expect(() => parseRun("3.17")).toThrow("'3.17' is a task; this command takes a run (3)");
  expect(parseWhole("--port", "80", 0, 65_535)).toBe(80);
  expect(() => parseWhole("--port", "70000", 0, 65_535)).toThrow("--port: '70000' is not a whole number");
});

const group = (name: string, total: number, after: string[], counts: Record<string, number> = { DONE: total }) => ({
  name,
  total,
  counts,
  after,
});

test("the result of a run is what the one task at its end wrote", () => {
  const numbering = { start: 0, step: 1 };
  const of = (...groups: ReturnType<typeof group>[]) =>
    resultTask(sampleRun({ groups, numbering, total: groups.reduce((sum, each) => sum + each.total, 0) }));
  expect(of(group("one", 1, []))).toBe(0);
  expect(of(group("dock", 10, []), group("merge", 1, ["dock"]))).toBe(10);
  expect(of(group("dock", 10, []))).toBeUndefined();
  expect(of(group("a", 1, []), group("b", 1, []))).toBeUndefined();
  expect(of(group("a", 3, []), group("b", 1, ["a (any)"]))).toBe(3);
  // a handler that was not needed does not end anything
  expect(of(group("a", 1, []), group("b", 1, ["a"]), group("mail", 1, ["b"], { CANCELED: 1 }))).toBe(undefined);
  expect(of(group("a", 1, []), group("b", 1, ["a"]), group("mail", 1, ["a"], { CANCELED: 1 }))).toBe(1);
  expect(resultTask(sampleRun({ groups: [group("a", 1, [])], total: 1000 }))).toBeUndefined();
  expect(resultTask(sampleRun({ total: 1, numbering: { start: 7, step: 1 } }))).toBe(7);
});
