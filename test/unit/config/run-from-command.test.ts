import { describe, expect, it } from "vitest";
import { buildRun } from "../../../src/config/build-run.ts";
import { readRunFile } from "../../../src/config/read-run-file.ts";
import { optionsFrom, type CommandOptions } from "../../../src/config/command-line.ts";
import { runFromCommand, withOptions } from "../../../src/config/run-from-command.ts";

const built = (command: string[], options: CommandOptions = {}) =>
  buildRun(runFromCommand(command, options), { cwd: "/work", env: {} });

describe("runFromCommand", () => {
  it("--each NAME=VALUES, repeated, is a matrix: ranges of numbers, everything else is a list", () => {
    const { spec } = built(["fit", "{item.seed}"], { each: ["seed=1-3,7", "model=a,b", "one=5"] });
    expect(spec.groups[0]!.items).toMatchObject({
      count: 8,
      axes: [{ name: "seed" }, { name: "model", values: ["a", "b"] }, { name: "one", ranges: [{ from: 5, count: 1 }] }],
    });
    for (const [each, said] of [
      [["seed"], "--each takes NAME=1-10"],
      [["a=1", "a=2"], "given twice"],
      [["a=x,,y"], "empty value"],
      [["a=x,x"], "--each a"],
    ] as const)
      expect(() => built(["fit"], { each })).toThrow(said);
  });

  it("--colsep goes with lines", () => {
    const { spec } = built(["cmp", "{item.0}", "{item.1}"], { stdin: true, colsep: String.raw`\t` });
    expect(spec.groups[0]).toMatchObject({ items: { kind: "list" }, colsep: "\t" });
    expect(() => built(["cmp"], { array: "1-3", colsep: "," })).toThrow("--colsep goes with --each-line or --stdin");
  });

  it("is a file with one task", () => {
    const { spec } = built(["/usr/bin/dock", "--cpus", "9", "{item}"], {
      array: "1-10:3",
      cpus: "2",
      mem: "1G",
      resource: ["licence=2"],
      env: ["A=1=2", "B="],
      "time-limit": "1h30m",
      priority: "-3",
      retries: "2",
      "max-fails": "0",
      after: "3,4",
      cwd: "sub/{item}",
      stdout: "out-{task}",
    });
    expect(spec).toMatchObject({ name: "dock", cwd: "/work", maxFails: 0, numbering: { start: 1, step: 3 } });
    expect(spec.groups).toEqual([
      {
        name: "dock",
        command: ["/usr/bin/dock", "--cpus", "9", "{item}"],
        items: { kind: "range", from: 1, step: 3, count: 4 },
        after: [
          { run: 3, on: "ok" },
          { run: 4, on: "ok" },
        ],
        resources: { cpus: 20_000, mem: 2 ** 30, licence: 20_000 },
        env: { A: "1=2", B: "" },
        cwd: "sub/{item}",
        stdout: "out-{task}",
        timeLimit: 5400,
        priority: -3,
        retries: 2,
        retryDelay: 0,
        executor: "process",
      },
    ]);
  });

  it("takes items from files and standard input", () => {
    expect(built(["x"], { "each-line": "f" }).items.get(0)).toMatchObject({ kind: "lines", path: "/work/f" });
    expect(built(["x"], { "from-json": "f" }).items.get(0)).toMatchObject({ kind: "json", path: "/work/f" });
    expect(built(["x"], { stdin: true }).items.get(0)).toMatchObject({ kind: "lines", path: "-" });
    expect(built(["x", "{item.a}"], { "from-json": "f", mem: "{item.mem}" }).spec.groups[0]!.itemResources).toEqual({
      mem: "{item.mem}",
    });
  });

  it.each<[string[], CommandOptions, RegExp]>([
    [["x"], { cpus: "-1" }, /^command line: --cpus: must not be negative/],
    [["x"], { cpus: "two" }, /^command line: --cpus: must be a number/],
    [["x"], { retries: "many" }, /^command line: --retries: must be a whole number, not "many"/],
    [["x"], { "max-fails": "1.5" }, /--max-fails: must be a whole number/],
    [["x"], { array: "1-1000000000" }, /1000000000 tasks/],
    [["x"], { array: "x" }, /--array: "x" is not a valid array/],
    [["x"], { array: "1", stdin: true }, /--array and --stdin cannot be used together/],
    [["x"], { resource: ["licence"] }, /--resource takes NAME=VALUE/],
    [["x"], { resource: ["licence=x"] }, /--resource licence: must be a number/],
    [["x"], { env: ["=x"] }, /--env takes NAME=VALUE/],
    [["x"], { env: ["A={wat}"] }, /--env A: unknown placeholder/],
    [["x"], { nodes: "0" }, /--nodes: must be between 1 and/],
    [["x"], { backend: "-q" }, /--backend: goes with via: job/],
    [["x"], { via: "plane" }, /--via: must be pilot or job, not "plane"/],
    [["x"], { after: "abc" }, /--after: "abc" is not a run id/],
    [["x"], { name: "a\nb" }, /--name: contains a line break/],
    [["x"], { export: "" }, /--export: takes all, none/],
    [["x", "a\0b"], {}, /COMMAND: contains a NUL/],
    [["x", "{item}"], {}, /COMMAND: \{item\} has no value/],
    [["x", "{nmae}"], {}, /COMMAND: unknown placeholder \{nmae\}; did you mean \{name\}\?/],
    [[], {}, /COMMAND: the command is empty/],
    [[""], {}, /the command is empty/],
  ])("%j %j", (command, options, message) => expect(() => built(command, options)).toThrow(message));

  it("takes options as a parser of flags gives them", () => {
    expect(optionsFrom({ timeLimit: "5m", eachLine: undefined, cpusPerRank: 2 })).toEqual({
      "time-limit": "5m",
      "cpus-per-rank": 2,
    });
  });
});

describe("withOptions", () => {
  const file = readRunFile(
    "name: f\nafter: 1\ntasks: [{name: a, run: a, cpus: 4, cluster: hpc, env: {A: x, B: y}}, {name: b, run: b}]",
    "f.yaml",
  );
  const combined = (options: CommandOptions) => buildRun(withOptions(file, options), { cwd: "/", env: {} }).spec;

  it("what is typed wins in every task", () => {
    const spec = combined({ name: "typed", cpus: "1", env: ["B=z"], after: "9", local: true });
    expect(spec.name).toBe("typed");
    expect(spec.groups.map(({ resources, cluster }) => [resources["cpus"], cluster])).toEqual([
      [10_000, "local"],
      [10_000, "local"],
    ]);
    expect(spec.groups.map(({ env }) => env)).toEqual([{ A: "x", B: "z" }, { B: "z" }]);
    expect(spec.groups[0]!.after).toEqual([
      { run: 1, on: "ok" },
      { run: 9, on: "ok" },
    ]);
    expect(combined({})).toEqual(buildRun(file, { cwd: "/", env: {} }).spec);
  });

  it("problems are the option's, not the file's", () => {
    expect(() => combined({ cpus: "-1" })).toThrow(/^command line: --cpus/);
    expect(() => combined({ array: "1-3" })).toThrow(/--array goes with a command/);
    expect(() => combined({ mem: "{item.mem}" })).toThrow(/\{item\} has no value/);
    for (const [options, key] of [
      [{ mem: "{item.mem}" }, "--mem"],
      [{ name: "a\nb" }, "--name"],
      [{ after: "x" }, "--after"],
      [{ "max-fails": "-1" }, "--max-fails"],
      [{ export: "some,words=" }, "--export"],
      [{ env: ["B={nmae}"] }, "--env B"],
      [{ resource: ["licence=many"] }, "--resource licence"],
      [{ stdout: "o/{nmae}" }, "--stdout"],
      [{ "time-limit": "0" }, "--time-limit"],
    ] as [CommandOptions, string][])
      expect(() => combined(options), key).toThrow(
        expect.objectContaining({ facts: expect.objectContaining({ where: "command line", key }) }),
      );
  });

  it("and the file's are not the option's", () => {
    const text = (more: string): string => `tasks:\n  - run: a\n    env: {A: x}\n    ${more}\n`;
    for (const [more, key] of [
      ["mem: lots", "mem"],
      ["stdout: o/{nmae}", "stdout"],
      ["resources: {licence: many}", "resources.licence"],
      ["after: none-such", "after"],
    ]) {
      const written = readRunFile(text(more!), "f.yaml");
      const options = { name: "n", cpus: "2", env: ["B=y"], resource: ["disk=2"], after: "3" };
      expect(() => buildRun(withOptions(written, options), { cwd: "/", env: {} }), more).toThrow(
        expect.objectContaining({
          facts: expect.objectContaining({ where: expect.stringMatching(/^f\.yaml:4:/), key }),
        }),
      );
    }
  });
});
