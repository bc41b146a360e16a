import fc from "fast-check";
import { expect, test } from "vitest";
import { acceptedRun } from "../../../src/config/accepted-run.ts";
import { plainRun } from "../../../src/config/plain-tasks.ts";
import { readRunBody } from "../../../src/config/run-file.ts";
import { RunInput, TaskInput } from "../../../src/config/run-schema.ts";

/** Values as they come in JSON: right ones of every kind, and wrong ones. */
const value = fc.oneof(
  fc.constantFrom<unknown>("", "t1", "500M", "job", "pilot", "null", "process", null, true, false, {}, [], "run:3"),
  fc.constantFrom<unknown>(0, 1, -3, 1.5, 2 ** 60, ["a", "b"], ["a", 1], [null], { t1: "any" }, { array: "1-3" }),
  fc.constantFrom<unknown>({ A: "1", B: 2, C: null }, { values: [1, "x"] }, { nothing: 1 }, [["a"]], [{ t1: "ok" }]),
  fc.constantFrom<unknown>(
    { array: 3 },
    { array: null },
    { lines: "f", colsep: "," },
    { json: "f" },
    { array: "1", x: 1 },
  ),
);

const key = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...Object.keys(TaskInput.shape)) },
  { weight: 1, arbitrary: fc.constantFrom("__proto__", "constructor", "toString", "comand") },
);

const task = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.tuple(fc.array(fc.tuple(key, value), { maxLength: 4 }), fc.constantFrom("x", ["x", "y"])),
  },
  { weight: 1, arbitrary: fc.tuple(fc.array(fc.tuple(key, value), { maxLength: 4 }), fc.constant(undefined)) },
);

/** As it comes from a request: `__proto__` is a key like any other there. */
const parse = (pairs: readonly (readonly [string, unknown])[]): unknown =>
  JSON.parse(`{${pairs.map(([name, each]) => `${JSON.stringify(name)}:${JSON.stringify(each)}`).join()}}`);

test("a run is accepted if the schema accepts it, and becomes the same", () => {
  let [accepted, alone] = [0, 0];
  const runs = fc.array(task, { maxLength: 3 });
  fc.assert(
    fc.property(
      runs,
      fc.constantFrom("name", "cwd", "max-fails", "export", "after", "force", "__proto__", "other"),
      value,
      (tasks, top, of) => {
        const body = {
          ...(parse([[top, of]]) as object),
          tasks: tasks.map(([pairs, run]) => parse(run === undefined ? pairs : [...pairs, ["run", run]])),
        };
        const quick = acceptedRun(body);
        const whole = RunInput.safeParse(body);
        expect(quick).toEqual(whole.data);
        if (whole.success) accepted += 1;
        const plain = plainRun(body);
        if (plain === undefined) return;
        expect(plain).toEqual(whole.data);
        alone += 1;
      },
    ),
    { numRuns: 2000 },
  );
  expect(accepted).toBeGreaterThan(100);
  expect(alone).toBeGreaterThan(50);
});

test.each<[string, unknown]>([
  ["nothing", undefined],
  ["a list", []],
  ["tasks that are no list", { tasks: {} }],
  ["a task that is a list", { tasks: [[]] }],
  ["a task that is text", { tasks: ["x"] }],
])("%s goes to the schema, which says what is wrong", (_, body) => {
  expect(acceptedRun(body)).toBeUndefined();
  expect(() => readRunBody(body)).toThrow();
});
