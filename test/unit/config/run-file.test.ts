import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { buildRun } from "../../../src/config/build-run.ts";
import { loadRunFile, readRunFile } from "../../../src/config/read-run-file.ts";
import { readRunBody } from "../../../src/config/run-file.ts";
import { SlipwayError } from "../../../src/errors.ts";
import { refused } from "../../refusal.ts";

const build = (text: string) => buildRun(readRunFile(text, "f.yaml"), { cwd: "/work", env: {} });

const task = (lines: string): string => `tasks:\n  - run: echo\n${lines.replace(/^/gm, "    ")}\n`;

describe("what is refused, where, and how it is said", () => {
  it.each([
    ["not YAML", "tasks: [a", /^f\.yaml:1:\d+: not valid YAML/],
    ["a tab", "tasks:\n\t- run: x\n", /^f\.yaml:2:1: not valid YAML/],
    ["an empty file", "", /is a map with the key `tasks`; this one is empty/],
    ["a list", "- a\n", /this one is a list/],
    ["plain text", "hello\n", /plain text/],
    ["two documents", "tasks: []\n---\ntasks: []\n", /not valid YAML/],
    ["no tasks", "name: x\n", /^f\.yaml:1:1: tasks: is missing/],
    ["an empty list of tasks", "tasks: []\n", /^f\.yaml:1:8: tasks: has no tasks/],
    ["tasks that are a map", "tasks: {a: b}\n", /^f\.yaml:1:8: tasks: must be a list of tasks, not a map/],
    ["a task that is text", "tasks: [echo]\n", /^f\.yaml:1:9: tasks\[0\]: must be a map/],
    ["a task without a command", "tasks:\n  - name: a\n", /^f\.yaml:2:5: run: is missing/],
    ["an unknown key", task("cpsu: 2"), /^f\.yaml:3:5: unknown key 'cpsu'; did you mean 'cpus'\?/],
    ["an unknown key at the top", "taks: []\ntasks: []\n", /^f\.yaml:1:1: unknown key 'taks'; did you mean 'tasks'\?/],
    ["a key of tasks at the top", "cpus: 2\ntasks: []\n", /it belongs to a task, or under `defaults`/],
    ["a key of the run in a task", task("max-fails: 2"), /it belongs to the top of the file/],
    ["a name in the defaults", "defaults: {name: x}\ntasks: []\n", /it belongs to a task/],
    ["a duplicate key", task("cpus: 1\ncpus: 2"), /^f\.yaml:4:5: the key 'cpus' appears twice/],
    ["__proto__", task("env: {__proto__: x}"), /cannot be used as a key/],
    ["a wrong type", task("cpus: [1]"), /^f\.yaml:3:11: cpus: must be a number.*not a list/],
    ["a wrong type inside a list", "tasks:\n  - run: [a, [b]]\n", /^f\.yaml:2:14: run\[1\]: must be text, not a list/],
    ["text for a whole number", task("retries: many"), /retries: must be a whole number, not "many"/],
    ["a fraction", task("retries: 1.5"), /must be a whole number, not 1\.5/],
    ["infinity", task("priority: .inf"), /must be a whole number/],
    ["negative retries", task("retries: -1"), /between 0 and 1000, not -1/],
    ["an absurd priority", task("priority: 99999999"), /between -1000000 and 1000000/],
    ["negative cpus", task("cpus: -1"), /^f\.yaml:3:11: cpus: must not be negative/],
    ["absurd cpus", task("cpus: 1e9"), /cpus: .*more than 1000000/],
    ["nan", task("cpus: .nan"), /cpus: must be a number/],
    ["absurd memory", task("mem: 5000T"), /mem: .*more than 1024 TiB/],
    ["a size that is none", task("mem: lots"), /mem: "lots" is not a valid size/],
    ["one and a half GPUs", task("gpus: 1.5"), /gpus: above 1 must be a whole number/],
    ["a resource name", task('resources: {"a b": 1}'), /resources\.a b: a resource name/],
    ["cpus among resources", task("resources: {cpu: 1}"), /cpus is a key of its own/],
    ["a duration that is none", task("time-limit: soon"), /time-limit: "soon" is not a valid duration/],
    ["no time at all", task("time-limit: 0"), /time-limit: must be more than 0/],
    ["an empty command", "tasks:\n  - run: '  '\n", /run: the command is empty/],
    ["no command", "tasks:\n  - run:\n", /^f\.yaml:2:\d+: run: must be a command.*not nothing/],
    ["an empty list", "tasks:\n  - run: []\n", /the command is empty/],
    ["NUL in an argument", 'tasks:\n  - run: [a, "b\\0"]\n', /^f\.yaml:2:14: run\[1\]: contains a NUL/],
    ["NUL in a script", 'tasks:\n  - run: "b\\0"\n', /run: contains a NUL/],
    ["NUL in the environment", task('env: {A: "\\0"}'), /env\.A: contains a NUL/],
    ["NUL in a path", task('stdout: "\\0"'), /stdout: contains a NUL/],
    ["a variable with =", task("env: {A=B: x}"), /is not a valid variable name/],
    ["a huge argument", `tasks:\n  - run: [${"a".repeat(131_001)}]\n`, /longer than 131000 bytes/],
    ["a name with a line break", task('name: "a\\nb"'), /name: contains a line break/],
    ["a name of 5000 characters", task(`name: ${"a".repeat(5000)}`), /has 5000 characters; at most 200/],
    ["an empty name", task("name: ''"), /name: is empty/],
    ["a run's name with ESC", 'name: "\\e[2J"\ntasks: [{run: a}]\n', /name: contains a line break or another control/],
    ["a name like a run", task("name: 'run:3'"), /must not start with run:/],
    [
      "a placeholder",
      "tasks:\n  - run: echo {itm}\n    each: {array: 1-3}\n",
      /^f\.yaml:2:10: run: unknown placeholder \{itm\}; did you mean \{item\}\?/,
    ],
    ["a placeholder in the environment", task("env: {A: '{wat}'}"), /env\.A: unknown placeholder \{wat\}/],
    ["an item without each", "tasks:\n  - run: echo {item}\n", /\{item\} has no value: the task has no `each`/],
    [
      "a field of a number",
      "tasks:\n  - run: echo {item.x}\n    each: {array: 1-3}\n",
      /\{item\.x\} needs items with fields/,
    ],
    [
      "a missing field",
      "tasks:\n  - run: echo {item.x}\n    each: {values: [{x: 1}, {y: 2}]}\n",
      /^f\.yaml:3:29: each\.values\[1\]: item 1 .*no field 'x'/,
    ],
    ["another placeholder in an amount", task("mem: '{run}G'"), /\{run\} cannot be used in an amount/],
    ["a formula", task("mem: '{1 +}G'"), /^f\.yaml:\d+:\d+: mem: \{1 \+\}G: .*a number is missing/],
    ["a name in a formula", task("mem: '{size * 2}G'"), /mem: .*"size" is not known; an amount can use item/],
    ["an item in a formula without each", task("mem: '{item * 2}G'"), /mem: \{item\} has no value/],
    [
      "a field in a formula of numbers",
      "tasks:\n  - run: a\n    each: {array: 1-3}\n    mem: '{item.n * 2}G'\n",
      /mem: \{item\.n\} needs items with fields/,
    ],
    [
      "a formula in one of its attempts",
      "tasks: [{run: a, mem: '{3 - attempt}G', retries: 3}]",
      /mem: \{3 - attempt\}G: must not be negative.*\(attempt 4\)/,
    ],
    [
      "too many attempts",
      "tasks: [{run: a, mem: '{attempt}G', retries: 500}]",
      /mem: uses attempt, .*at most 100 retries/,
    ],
    [
      "an item of a formula",
      "tasks:\n  - run: a\n    mem: '{item.n * 2}G + 1G'\n    each: {values: [{n: 1}, {n: x}]}\n",
      /each\.values\[1\]: item 1 .*mem: \{item\.n \* 2\}G \+ 1G: item\.n is "x", not a number/,
    ],
    [
      "an item of a formula, in one of its attempts",
      "tasks:\n  - run: a\n    retries: 2\n    cpus: '{2 - attempt * item}'\n    each: {values: [0, 1]}\n",
      /cpus: \{2 - attempt \* item\}: must not be negative.*\(attempt 3\)/,
    ],
    ["a formula of time", task("time-limit: '{attempt * 10}m'"), /time-limit: .*is not a valid duration/],
    [
      "mem-retry with a formula",
      "tasks: [{run: a, mem: '{attempt}G', mem-retry: 2}]",
      /mem-retry: cannot go with mem: \{attempt\}G, which is a formula/,
    ],
    ["mem-retry without mem", task("mem-retry: 2"), /mem-retry: needs mem/],
    ["too many mem-retries", "tasks: [{run: a, mem: 1G, mem-retry: 21}]", /mem-retry: must be between 0 and 20/],
    ["auto where nothing is learned", task("tmp: auto"), /tmp: "auto" is not a valid size/],
    ["auto for the limit of time", task("time-limit: auto"), /time-limit: "auto" is not a valid duration/],
    ["two kinds of items", task("each: {array: 1-3, lines: f}"), /has both array and lines/],
    ["no items", task("each: {}"), /each: is empty; it takes one of/],
    ["an empty list of items", task("each: {values: []}"), /has no items/],
    ["a kind of items", task("each: {aray: 1-3}"), /unknown key 'aray'; did you mean 'array'\?/],
    ["a stream in a file", task("each: {stream: true}"), /belongs to requests/],
    ["an array backwards", task("each: {array: 5-1}"), /goes backwards/],
    ["an array of 10^9", task("each: {array: 1-1000000000}"), /would have 1000000000 tasks; at most 10000000/],
    ["a list of 10^9", task("each: {array: '1-500000000,600000000-1100000000'}"), /at most 10000000/],
    [
      "too many together",
      `tasks: [{run: a, each: {array: 1-6000000}}, {run: b, each: {array: 1-6000000}}]`,
      /12000000 tasks/,
    ],
    [
      "a condition",
      "tasks: [{name: a, run: x}, {run: y, after: {a: fail}}]",
      /must be ok, any, failed or same, not "fail"; did you mean 'failed'\?/,
    ],
    [
      "an unknown task",
      "tasks:\n - {name: prepare, run: x}\n - {run: y, after: prepar}",
      /^f\.yaml:3:20: after: no task is named 'prepar'; did you mean 'prepare'\?/,
    ],
    ["a run that is none", "tasks: [{run: y, after: 'run:x'}]", /"x" is not a run id/],
    [
      "two conditions",
      "tasks: [{name: a, run: x}, {run: y, after: [a, {a: any}]}]",
      /'a' is named with both ok and any/,
    ],
    ["itself", "tasks: [{name: a, run: x, after: a}]", /wait for each other: a → a/],
    [
      "a circle",
      "tasks: [{name: a, run: x, after: c}, {name: b, run: x, after: a}, {name: c, run: x, after: b}, {name: d, run: x, after: a}]",
      /: [abc] → [abc] → [abc] → [abc]$/,
    ],
    [
      "the same name twice",
      "tasks:\n - {name: a, run: x}\n - {name: a, run: y}",
      /^f\.yaml:3:11: name: 'a' is already the name of the task at f\.yaml:2:11/,
    ],
    ["local and a cluster", task("local: true\ncluster: hpc"), /contradicts cluster: hpc/],
    ["staging", task("in: [a]"), /^f\.yaml:3:9: in: not supported yet: file staging/],
    ["too few ranks", "defaults: {nodes: 2}\ntasks: [{run: a, ranks: 1}]", /^f\.yaml:2:25: ranks: 1 ranks cannot be/],
    ["cores said twice", "tasks: [{run: a, cpus: 2, cpus-per-rank: 2}]", /cpus-per-rank: contradicts cpus/],
    [
      "an unknown launcher",
      "tasks: [{run: a, rank-launcher: x}]",
      /rank-launcher: must be one of agents, mpiexec, srun/,
    ],
    ["options of the manager", task("backend: -q x"), /backend: goes with via: job/],
    ["a uuid in a file", "uuid: 4e3e0f0a-51f0-4b1c-9d3f-0a3d5a8a7b11\ntasks: [{run: a}]", /belongs to requests/],
    ["an alias without anchor", "tasks: *nothing\n", /nothing/],
    ["export", "export: 'A=1'\ntasks: [{run: a}]", /export: takes names only/],
  ])("%s", (_, text, message) => {
    const error = refused(() => build(text));
    expect(error.message).toMatch(message);
    expect(error.row.exit).toBe(2);
    expect(error.hint).not.toMatch(/^\s*$/);
  });

  it("bombs of aliases and nests are bounded", () => {
    const bomb = ["x-0: &a0 [1,1,1,1,1,1,1,1,1,1]"];
    for (let i = 1; i < 12; i++)
      bomb.push(
        `x-${i}: &a${i} [${Array(10)
          .fill(`*a${i - 1}`)
          .join(",")}]`,
      );
    expect(refused(() => build(bomb.join("\n"))).message).toMatch(/aliases expand to more than/);
    expect(refused(() => build(`tasks: ${"[".repeat(100)}${"]".repeat(100)}`)).message).toMatch(/nested/);
    expect(refused(() => build(`tasks: ${"[".repeat(100_000)}`)).code).toBe("bad-file");
    expect(refused(() => readRunFile("#".repeat(65 * 2 ** 20), "big.yaml")).code).toBe("too-large");
  });

  it("any text is read or refused, never more", () => {
    const piece = fc.constantFrom(
      "tasks:",
      "\n",
      "  ",
      "- ",
      "run: ",
      "echo",
      "{item}",
      "each: {array: 1-3}",
      "after: ",
      "a",
      "[",
      "]",
      "{",
      "}",
      ":",
      "&x ",
      "*x",
      "<<: ",
      "|",
      ">",
      '"',
      "'",
      "#",
      "!!int ",
      "? ",
      "cpus: ",
      "-1",
      "\t",
    );
    fc.assert(
      fc.property(fc.string({ unit: piece, maxLength: 30 }), (text) => {
        try {
          build(text);
        } catch (error) {
          expect(error).toBeInstanceOf(SlipwayError);
        }
      }),
      { numRuns: 1500 },
    );
  });
});

describe("requests", () => {
  it.each([
    [null, /^request: request: must be a map/],
    [{ tasks: [{ run: "a" }, { run: "b", cpus: -1 }] }, /^tasks\[1\]\.cpus: cpus: must not be negative/],
    [{ tasks: [{ run: "a", cpu: 1 }] }, /^tasks\[0\]\.cpu: unknown key 'cpu'; did you mean 'cpus'\?/],
    [{ tasks: [{ run: "a", each: { lines: "f" } }] }, /^tasks\[0\]\.each\.lines: .*does not read/],
    [{ tasks: [{ run: "a" }], environment: { A: 1 } }, /^environment\.A: /],
    [{ tasks: [{ run: "a" }], environment: { "A=": "x" } }, /is not a valid variable name/],
    [{ tasks: [{ run: "a" }], uuid: "x" }, /^uuid: uuid: must be a UUID/],
    [
      {
        tasks: [{ run: "a" }],
        environment: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`V${i}`, "x".repeat(100_000)])),
      },
      /environment is .* more than/,
    ],
  ])("%#", (body, message) => {
    expect(refused(() => buildRun(readRunBody(body), { cwd: "/" })).message).toMatch(message);
  });

  it("need a directory, and carry their own environment and uuid", () => {
    const uuid = "4e3e0f0a-51f0-4b1c-9d3f-0a3d5a8a7b11";
    const body = { tasks: [{ run: "a", each: { stream: "json" } }], environment: { A: "1" }, uuid };
    expect(refused(() => buildRun(readRunBody(body), {})).message).toMatch(/cwd: must be an absolute directory/);
    const built = buildRun(readRunBody({ ...body, cwd: "/data" }), { env: { B: "2" } });
    expect(built.spec).toMatchObject({ cwd: "/data", env: { A: "1" } });
    expect(built.uuid).toBe(uuid);
    expect(built.items.get(0)).toEqual({ kind: "stream", json: true });
  });
});

describe("files on disk", () => {
  const directory = mkdtempSync(join(tmpdir(), "slipway-run-file-"));
  afterAll(() => rmSync(directory, { recursive: true }));

  it("give their name to the run, or say why they cannot be read", () => {
    const path = join(directory, "docking.yaml");
    writeFileSync(path, "tasks: [{run: a}]\n");
    expect(loadRunFile(path).defaultName).toBe("docking");
    expect(refused(() => loadRunFile(join(directory, "none.yaml"))).message).toMatch(/there is no such file/);
    expect(refused(() => loadRunFile(directory)).message).toMatch(/is a directory/);
    writeFileSync(path, Buffer.from([0x74, 0xff, 0xfe]));
    expect(refused(() => loadRunFile(path)).message).toMatch(/not UTF-8/);
  });
});
