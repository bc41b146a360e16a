import { describe, expect, it } from "vitest";
import { buildRun } from "../../../src/config/build-run.ts";
import { readRunFile } from "../../../src/config/read-run-file.ts";
import { readRunBody } from "../../../src/config/run-file.ts";
import { runFromCommand, withOptions } from "../../../src/config/run-from-command.ts";
import { SlipwayError } from "../../../src/errors.ts";

/** Tasks that would write to the same file are refused, unless all of them append to it. */

const read = (tasks: string) => readRunFile(tasks, "run.yaml");
const build = (tasks: string) => buildRun(read(tasks), { cwd: "/work", env: {} });

const refusalOf = (make: () => unknown): SlipwayError => {
  try {
    make();
  } catch (error) {
    if (error instanceof SlipwayError) return error;
    throw error;
  }
  throw new Error("it was not refused");
};

const array = (more: string): string => `tasks: [{ run: echo, each: { array: 1-200 }, ${more} }]`;

describe("the tasks of one entry", () => {
  it.each([
    ["one path for all", array("stdout: o.txt")],
    ["what is the same for all", array('stdout: "{run}-{name}-{attempt}.txt"')],
    ["literal braces", array('stdout: "{{item}}.txt"')],
    ["standard error", array("stderr: e.txt")],
    ["both in one", array("stdout: o.txt, stderr: o.txt")],
    ["a directory for all", array('cwd: "d/{name}", stdout: "{cwd}/o.txt"')],
    ["a list", "tasks: [{ run: echo, each: { values: [a, b] }, stdout: o.txt }]"],
    ["several ranges", "tasks: [{ run: echo, each: { array: '1-3,7' }, stdout: o.txt }]"],
    ["a file of lines, however many it has", "tasks: [{ run: echo, each: { lines: f.txt }, stdout: o.txt }]"],
    ["a file of values", "tasks: [{ run: echo, each: { json: f.json }, stdout: o.txt }]"],
    ["ranks of several tasks", array("stdout: o.txt, ranks: 2")],
    ["append: false", array("stdout: o.txt, append: false")],
  ])("refused: %s", (_, text) => {
    const { code, facts, hint } = refusalOf(() => build(text));
    expect(code).toBe("bad-value");
    expect(facts["key"]).toMatch(/^std(out|err)$/);
    expect(facts["where"]).toMatch(/^run\.yaml:\d+:\d+$/);
    expect(hint).toMatch(/\{task\}.*\{item\}.*append/);
  });

  it.each([
    ["the item", array('stdout: "{item}.txt"')],
    ["the number", array('stdout: "{task}.txt", stderr: "{task}.txt"')],
    ["a field", "tasks: [{ run: echo, each: { values: [{ a: 1 }, { a: 2 }] }, stdout: '{item.a}' }]"],
    ["equal items are the user's own affair", "tasks: [{ run: echo, each: { values: [a, a] }, stdout: '{item}' }]"],
    ["a directory of its own", array('cwd: "d/{item}", stdout: "{cwd}/o.txt"')],
    ["one item", "tasks: [{ run: echo, each: { values: [a] }, stdout: o.txt }]"],
    ["an array of one", "tasks: [{ run: echo, each: { array: 7 }, stdout: o.txt }]"],
    ["one task, one file for both streams", "tasks: [{ run: echo, stdout: o.txt, stderr: o.txt }]"],
    ["ranks of one task: each has a file of its own", "tasks: [{ run: echo, ranks: 4, stdout: o.txt }]"],
    ["what keeps nothing", array("stdout: /dev/null, stderr: /dev//null")],
    ["append", array("stdout: o.txt, append: true")],
    ["append as a default", `defaults: { append: true, stdout: o.txt }\n${array("cpus: 1")}`],
  ])("taken: %s", (_, text) => {
    expect(build(text).spec.groups).toHaveLength(1);
  });

  it("append is in the spec, and only where it was asked for", () => {
    expect(build(array("stdout: o.txt, append: true")).spec.groups[0]).toMatchObject({ append: true });
    expect(build(array('stdout: "{item}"')).spec.groups[0]).not.toHaveProperty("append");
  });
});

describe("several entries", () => {
  const two = (first: string, second: string, defaults = ""): string =>
    `${defaults === "" ? "" : `defaults: { ${defaults} }\n`}tasks:\n  - { name: a, run: echo, ${first} }\n  - { name: b, run: echo, ${second} }\n`;

  it.each([
    ["the same path", two("stdout: o.txt", "stdout: o.txt")],
    ["written in another way", two("stdout: o.txt", "stdout: ./d/../o.txt")],
    ["as a whole path", two("stdout: o.txt", "stdout: /work/o.txt")],
    ["of the run's directory", two("stdout: o.txt", 'stdout: "{cwd}/o.txt"')],
    ["standard output here, standard error there", two("stdout: o.txt", "stderr: o.txt")],
    ["by default", two("cpus: 1", "cpus: 1", "stdout: o.txt")],
    ["one after the other", two("stdout: o.txt", "stdout: o.txt, after: a")],
    ["one of them appends", two("stdout: o.txt, append: true", "stdout: o.txt")],
    ["arrays that overlap", two("each: { array: 1-10 }", "each: { array: 5-20 }", 'stdout: "{item}.txt"')],
    ["arrays with steps", two("each: { array: '1-9:2' }", "each: { array: '5-20:2' }", 'stdout: "{item}.txt"')],
  ])("refused: %s", (_, text) => {
    const { code, facts, hint } = refusalOf(() => build(text));
    expect(code).toBe("bad-value");
    expect(facts["detail"]).toContain("'a'");
    expect(hint).toMatch(/\{name\}.*append/);
  });

  it.each([
    ["names", two("cpus: 1", "cpus: 1", 'stdout: "{name}.txt"')],
    ["numbers", two("cpus: 1", "cpus: 1", 'stdout: "{task}.txt"')],
    ["arrays that do not overlap", two("each: { array: 1-10 }", "each: { array: 11-20 }", 'stdout: "{item}.txt"')],
    ["odd and even", two("each: { array: '1-9:2' }", "each: { array: '2-10:2' }", 'stdout: "{item}.txt"')],
    ["lists are the user's own", two("each: { values: [a] }", "each: { values: [a] }", 'stdout: "{item}.txt"')],
    ["all append", two("stdout: o.txt", "stderr: o.txt", "append: true")],
    ["a file of ranks and one without", two("stdout: o.txt, ranks: 2", "stdout: o.txt")],
    ["what keeps nothing", two("stdout: /dev/null", "stderr: /dev/null")],
  ])("taken: %s", (_, text) => {
    expect(build(text).spec.groups).toHaveLength(2);
  });

  it("a file of 20,000 entries is judged at once", () => {
    const tasks = Array.from({ length: 20_000 }, (_, i) => ({
      name: `t${i}`,
      run: ["true"],
      each: { array: `${i * 10}-${i * 10 + 5}` },
      stdout: "{item}.txt",
      stderr: `${i}-{item}.err`,
    }));
    const document = readRunBody({ cwd: "/", environment: {}, tasks });
    expect(buildRun(document, {}).spec.groups).toHaveLength(20_000);
  });
});

describe("where it is judged", () => {
  it("on the command line the option is named", () => {
    const document = runFromCommand(["echo"], { array: "1-200", stdout: "o.txt" });
    expect(refusalOf(() => buildRun(document, { cwd: "/work" })).facts).toMatchObject({
      where: "command line",
      key: "--stdout",
    });
    const appending = runFromCommand(["echo"], { array: "1-200", stdout: "o.txt", append: true });
    expect(buildRun(appending, { cwd: "/work" }).spec.groups[0]).toMatchObject({ append: true });
  });

  it("an option beside a file counts for all its tasks", () => {
    const file = read("tasks: [{ name: a, run: echo }, { name: b, run: echo }]");
    expect(refusalOf(() => buildRun(withOptions(file, { stdout: "o" }), { cwd: "/work" })).code).toBe("bad-value");
    const { spec } = buildRun(withOptions(file, { stdout: "o", append: true }), { cwd: "/work" });
    expect(spec.groups.map(({ append }) => append)).toEqual([true, true]);
  });

  it("in a request too, also where the items follow in the stream", () => {
    const request = (each: unknown) =>
      readRunBody({ cwd: "/", environment: {}, tasks: [{ run: ["echo"], stdout: "o.txt", each }] });
    for (const each of [{ array: "1-2" }, { stream: "lines" }, { values: [1, 2] }])
      expect(refusalOf(() => buildRun(request(each), {})).facts).toMatchObject({ where: "tasks[0].stdout" });
  });
});
