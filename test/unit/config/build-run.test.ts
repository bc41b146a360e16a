import { describe, expect, it } from "vitest";
import { buildRun } from "../../../src/config/build-run.ts";
import { requestBody } from "../../../src/config/request-body.ts";
import { readRunFile } from "../../../src/config/read-run-file.ts";
import { readRunBody } from "../../../src/config/run-file.ts";
import { taskCount } from "../../../src/core/spec.ts";

const read = (text: string) => readRunFile(text, "dir/docking.yaml");
const build = (text: string) => buildRun(read(text), { cwd: "/work", env: { PATH: "/bin", SSH_TTY: "x" } });

const numbering = (text: string) => build(text).spec.numbering;

const clusters = (text: string) => build(text).spec.groups.map(({ cluster }) => cluster);

describe("buildRun", () => {
  it("applies defaults and resolves names", () => {
    const { spec, items } = build(`
name: docking
defaults: { cpus: 1, mem: 500M, time-limit: 10m, env: { A: 1, B: 2 }, resources: { licence: 1 } }
max-fails: 3
tasks:
  - name: prepare
    run: ./prepare.sh
  - name: dock
    each: { array: 1-1000 }
    after: prepare
    run: ./dock --ligand {item}
    cpus: 2
    retries: 2
    retry-delay: 1m
    env: { B: 3 }
  - name: merge
    after: { dock: any, "run:7": failed }
    run: [python3, merge.py, 0.10, true]
    resources: { licence: 0 }
    priority: -5
    pin: true
    executor: null
    local: true
`);
    expect(spec).toMatchObject({ name: "docking", cwd: "/work", env: { PATH: "/bin" }, maxFails: 3 });
    expect(spec.env).not.toHaveProperty("SSH_TTY");
    expect(spec.numbering).toEqual({ start: 0, step: 1 });
    expect(items.size).toBe(0);
    const [prepare, dock, merge] = spec.groups;
    expect(prepare).toEqual({
      name: "prepare",
      command: "./prepare.sh",
      items: { kind: "one" },
      after: [],
      resources: { cpus: 10_000, mem: 500 * 2 ** 20, licence: 10_000 },
      env: { A: "1", B: "2" },
      timeLimit: 600,
      priority: 0,
      retries: 0,
      retryDelay: 0,
      executor: "process",
    });
    expect(dock).toMatchObject({
      items: { kind: "range", from: 1, step: 1, count: 1000 },
      after: [{ group: 0, on: "ok" }],
      resources: { cpus: 20_000 },
      retries: 2,
      retryDelay: 60,
      env: { A: "1", B: "3" },
    });
    expect(merge).toMatchObject({
      command: ["python3", "merge.py", "0.10", "true"],
      after: [
        { group: 1, on: "any" },
        { run: 7, on: "failed" },
      ],
      priority: -5,
      pin: true,
      executor: "null",
      cluster: "local",
    });
    expect(merge!.resources).toEqual({ cpus: 10_000, mem: 500 * 2 ** 20 });
    expect(taskCount(spec)).toBe(1002);
  });

  it("names what has no name", () => {
    expect(build("tasks: [{run: a}]").spec).toMatchObject({ name: "docking", groups: [{ name: "docking" }] });
    expect(build("tasks: [{run: a}, {run: b, name: task-1}, {run: c}]").spec.groups.map(({ name }) => name)).toEqual([
      "task-1_",
      "task-1",
      "task-3",
    ]);
    expect(build("name: 2024.10\ntasks: [{run: a}]").spec.name).toBe("2024.10");
  });

  it("a single array keeps its own numbers", () => {
    expect(numbering("tasks: [{run: a, each: {array: 10-20:5}}]")).toEqual({ start: 10, step: 5 });
    expect(numbering("tasks: [{run: a, each: {array: '1-3,7'}}]")).toEqual({ start: 0, step: 1 });
    expect(numbering("tasks: [{run: a, each: {array: 10-20}}, {run: b}]")).toEqual({ start: 0, step: 1 });
    expect(numbering("tasks: [{run: a, each: {values: [x]}}]")).toEqual({ start: 0, step: 1 });
    expect(numbering("tasks: [{run: a, mem: '{item}M', each: {array: 5-7}}]")).toEqual({ start: 5, step: 1 });
  });

  it("says where items come from", () => {
    const { spec, items } = build(`
tasks:
  - { name: a, run: a, each: { lines: sub/f.txt } }
  - { name: b, run: b, each: { json: /abs/f.json } }
  - { name: c, run: c, each: { values: [0.10, x, true] } }
  - { name: d, run: "d {item.k}", each: { values: [{ k: 1 }, { k: [2] }] } }
  - { name: e, run: e, each: { array: "1-2,9" } }
  - { name: f, run: f, each: { array: 1-2 }, mem: "{item}G" }
  - { name: g, run: g, each: { lines: "-" } }
`);
    expect(items.get(0)).toMatchObject({ kind: "lines", path: "/work/sub/f.txt" });
    expect(items.get(1)).toMatchObject({ kind: "json", path: "/abs/f.json", place: { key: "each.json" } });
    expect(items.get(2)).toEqual({ kind: "values", json: false, count: 3, values: ["0.10", "x", "true"] });
    expect(items.get(3)).toEqual({ kind: "values", json: true, count: 2, values: ['{"k":1}', '{"k":[2]}'] });
    const listed = (index: number): string[] => {
      const input = items.get(index);
      return input?.kind === "values" ? [...input.values] : [];
    };
    expect(listed(4)).toEqual(["1", "2", "9"]);
    expect(listed(5)).toEqual(["1", "2"]);
    expect(spec.groups[5]).toMatchObject({ itemResources: { mem: "{item}G" }, resources: { cpus: 10_000 } });
    expect(items.get(6)).toMatchObject({ path: "-" });
    // lists that have not been read yet count as nothing
    expect(taskCount(spec)).toBe(0 + 0 + 3 + 2 + 3 + 2 + 0);
  });

  it("row 001-8: formulas are kept for what they depend on; what they come to in the first attempt is known where it can be", () => {
    const { spec } = build(`
tasks:
  - { name: a, run: a, mem: "{attempt * 4}G + 1G", retries: 3, each: { array: 1-5 } }
  - { name: b, run: b, mem: "{item.n * 10}M + 2G", resources: { licence: "{max(item.n, attempt)}" }, each: { values: [{ n: 1 }] } }
  - { name: c, run: c, mem: "2G + 512M", cpus: "{2 * 3}", gpus: "{attempt - 1}", retries: 1 }
  - { name: d, run: d, ranks: 2, cpus-per-rank: "{item * 2}", each: { array: 1-2 } }
`);
    const G = 2 ** 30;
    const of = (i: number) => {
      const { resources, itemResources, attemptResources, items } = spec.groups[i]!;
      return { resources, itemResources, attemptResources, kind: items.kind };
    };
    expect(of(0)).toEqual({
      resources: { cpus: 10_000, mem: 5 * G },
      itemResources: undefined,
      attemptResources: { mem: "{attempt * 4}G + 1G" },
      kind: "range",
    });
    expect(of(1)).toEqual({
      resources: { cpus: 10_000 },
      itemResources: { mem: "{item.n * 10}M + 2G", licence: "{max(item.n, attempt)}" },
      attemptResources: { licence: "{max(item.n, attempt)}" },
      kind: "list",
    });
    expect(of(2)).toEqual({
      resources: { cpus: 60_000, mem: 2.5 * G },
      itemResources: undefined,
      attemptResources: { gpus: "{attempt - 1}" },
      kind: "one",
    });
    expect(of(3)).toMatchObject({ resources: {}, itemResources: { cpus: "{item * 2}" }, kind: "list" });
  });

  it("auto is kept for the server, which knows what was learned", () => {
    const { spec } = build(`
defaults: { mem: auto }
tasks:
  - { name: a, run: a, time-request: auto }
  - { name: b, run: b, mem-retry: 3 }
  - { name: c, run: c, mem: 2G }
  - { name: d, run: d, mem-retry: 0 }
`);
    expect(
      spec.groups.map(({ auto, memRetry, resources, timeRequest }) => ({ auto, memRetry, ...resources, timeRequest })),
    ).toEqual([
      { auto: { mem: true, timeRequest: true }, memRetry: 4, cpus: 10_000, timeRequest: undefined },
      { auto: { mem: true }, memRetry: 3, cpus: 10_000, timeRequest: undefined },
      { auto: undefined, memRetry: undefined, cpus: 10_000, mem: 2 ** 31, timeRequest: undefined },
      { auto: { mem: true }, memRetry: undefined, cpus: 10_000, timeRequest: undefined },
    ]);
  });

  it("a run's own after holds for all its tasks", () => {
    const { spec } = build(
      "after: [3, 'run:4', {'5': any}]\ntasks: [{name: a, run: a}, {run: b, after: [a, 'run:9']}]",
    );
    const runs = [
      { run: 3, on: "ok" },
      { run: 4, on: "ok" },
      { run: 5, on: "any" },
    ];
    expect(spec.groups[0]!.after).toEqual(runs);
    expect(spec.groups[1]!.after).toEqual([...runs, { group: 0, on: "ok" }, { run: 9, on: "ok" }]);
  });

  it("tasks wait item by item: same, by a field, and on which outcome", () => {
    const { spec } = build(`
tasks:
  - { name: a, each: { values: [{ s: x, n: 1 }, { s: y, n: 2 }] }, run: a }
  - { name: b, each: { values: [{ s: y, n: 2 }, { s: x, n: 1 }] }, run: b, after: { a: same } }
  - { name: c, each: { values: [{ s: x }] }, run: c, after: [{ a: { items: { by: s } } }, { b: { when: any } }] }
  - { name: d, each: { values: [{ s: x }] }, run: c, after: { c: { items: same, when: failed } } }
`);
    expect(spec.groups.map(({ after }) => after)).toEqual([
      [],
      [{ group: 0, on: "ok", items: "same" }],
      [
        { group: 0, on: "ok", items: { by: "s" } },
        { group: 1, on: "any" },
      ],
      [{ group: 2, on: "failed", items: "same" }],
    ]);
  });

  it.each([
    ["{ a: smae }", "did you mean"],
    ["{ a: { items: same, wen: any } }", 'not "wen"'],
    ["{ a: { items: same, when: maybe } }", "when of 'a' must be ok, any or failed"],
    ["{ a: { items: { by: [s] } } }", "must be same, or {by: KEY}"],
    ["{ a: { items: { by: 's s' } } }", "must be same, or {by: KEY}"],
    ["{ 'run:3': same }", "inside one run only"],
    ["[{ a: same }, { a: any }]", "named with both"],
    ["{ a: same }", `a has no item "z", which b has`],
    ["{ a: { items: { by: s } } }", "item 0 of a: no field 's'"],
    ["{ one: same }", "'one' has no items"],
  ])("after: %s is refused: %s", (after, said) => {
    const file = `
tasks:
  - { name: a, each: { values: [x, y] }, run: a }
  - { name: one, run: a }
  - { name: b, each: { values: [x, z] }, run: b, after: ${after} }
`;
    expect(() => build(file)).toThrow(said);
  });

  it("a matrix is computed; with amounts from its items it is a list", () => {
    const each = "each: { matrix: { seed: '1-3,7', lr: [0.10, 1e3] } }";
    const { spec, items } = build(`tasks: [{ ${each}, run: "fit {item.seed} {item.lr}" }]`);
    const axes = [
      {
        name: "seed",
        ranges: [
          { from: 1, step: 1, count: 3 },
          { from: 7, step: 1, count: 1 },
        ],
      },
      { name: "lr", values: ["0.10", "1e3"] },
    ];
    expect([spec.groups[0]!.items, items.size]).toEqual([{ kind: "matrix", axes, count: 8 }, 0]);
    const sized = build(`tasks: [{ ${each}, run: fit, mem: "{item.seed}G" }]`);
    const input = sized.items.get(0);
    expect(sized.spec.groups[0]!.items).toEqual({ kind: "list", count: 8 });
    expect(input?.kind === "values" ? [...input.values].slice(0, 2) : []).toEqual([
      '{"seed":1,"lr":"0.10"}',
      '{"seed":1,"lr":"1e3"}',
    ]);
  });

  it.each([
    ["matrix: {}", "has no keys"],
    ["matrix: { a: [] }", "has no values"],
    ["matrix: { a: [x, x] }", 'has the value "x" twice'],
    ["matrix: { a: '1-3,2' }", "overlap"],
    ["matrix: { a: x }", "other values go into a list"],
    ["matrix: { a: [{ b: 1 }] }", "must be text or a number"],
    ["matrix: { 'a b': 1-3 }", "is not a name"],
    ["matrix: { a: 1-100000, b: 1-101 }", "10100000"],
    ["matrix: { a: 1-3 }, array: 1-3", "has both"],
    ["matrix: { seed: 1-3 }", "the matrix has no key 'a'"],
    ["array: 1-3, colsep: ','", "goes with lines"],
    ["lines: f, colsep: ''", "1 to 100 characters"],
    ["lines: f, colsep: ','", "{item.a} is not a column"],
  ])("each: {%s} is refused: %s", (each, said) => {
    expect(() => build(`tasks: [{ each: { ${each} }, run: "fit {item.a}" }]`)).toThrow(said);
  });

  it("a value that no quoting can place is refused, whichever key it belongs to", () => {
    const file = String.raw`tasks: [{ each: { matrix: { a: [x, "y\nz"], b: 1-3 } }, run: "cat <<E\n{item.KEY}\nE" }]`;
    expect(() => build(file.replace("KEY", "a"))).toThrow("a value with a line break cannot go into a here-document");
    expect(build(file.replace("KEY", "b")).spec.groups[0]!.items).toMatchObject({ count: 6 });
  });

  it("anchors and merges work", () => {
    const { spec } = build(`
x-base: &base { cpus: 4, env: { A: x } }
tasks:
  - { <<: *base, name: a, run: a }
  - { <<: *base, name: b, run: b, cpus: 1 }
`);
    expect(spec.groups.map(({ resources }) => resources["cpus"])).toEqual([40_000, 10_000]);
    expect(spec.groups[0]!.env).toEqual({ A: "x" });
  });

  it("a default cluster gives way to a task's local, and the other way round", () => {
    expect(clusters("defaults: {cluster: hpc}\ntasks: [{run: a, local: true}, {run: b}]")).toEqual(["local", "hpc"]);
    expect(clusters("defaults: {local: true}\ntasks: [{run: a, cluster: hpc}, {run: b}]")).toEqual(["hpc", "local"]);
  });

  it("a variable without a value, however YAML spells that, is empty; quoted, null is text like any other", () => {
    const of = (env: string) => build(`tasks: [{ run: a, env: ${env} }]`).spec.groups[0]!.env;
    expect(of("{ A: , B: null, C: ~, D: Null, E: 'null', F: nullish, G: 1 }")).toEqual(
      Object.fromEntries([...[..."ABCD"].map((name) => [name, ""]), ["E", "null"], ["F", "nullish"], ["G", "1"]]),
    );
    const body = { tasks: [{ run: "a", env: { B: null } }] };
    expect(buildRun(readRunBody(body), { cwd: "/work", env: {} }).spec.groups[0]!.env).toEqual({ B: "" });
    // elsewhere text is text
    expect(build("tasks: [{ run: [echo, null, ~], name: null }]").spec.groups[0]).toMatchObject({
      command: ["echo", "null", "~"],
      name: "null",
    });
  });

  it("what the client sends is understood as the same run", () => {
    const document = read(`
defaults: { cpus: 2 }
export: none
tasks:
  - { name: a, run: [echo, 007, "{item}"], each: { lines: f.txt }, executor: null }
  - { name: b, run: echo, after: { a: failed }, env: { V: 1.10, E: } }
`);
    const { spec } = buildRun(document, { cwd: "/work", env: { PATH: "/bin", X: "y" } });
    const body = requestBody(document, spec, "4e3e0f0a-51f0-4b1c-9d3f-0a3d5a8a7b11");
    const again = buildRun(readRunBody(JSON.parse(JSON.stringify(body))), {});
    expect(again.spec).toEqual(spec);
    expect(spec.env).toEqual({ PATH: "/bin" });
    expect(spec.groups[0]!.command).toEqual(["echo", "007", "{item}"]);
    expect(spec.groups[1]!.env).toEqual({ V: "1.10", E: "" });
    expect(again.items.get(0)).toEqual({ kind: "stream", json: false });
  });
});

describe("size", () => {
  it("ten million tasks in one array are one range", () => {
    const document = read("tasks: [{run: a, each: {array: 1-10000000}}]");
    const before = process.memoryUsage().arrayBuffers;
    const { spec, items } = buildRun(document, { cwd: "/" });
    expect(taskCount(spec)).toBe(10_000_000);
    // nothing is allocated for each of them
    expect([spec.groups[0]!.items, items.size]).toEqual([{ kind: "range", from: 1, step: 1, count: 10_000_000 }, 0]);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000);
  });

  it("a chain of 100,000 entries is checked in linear time, without recursion", () => {
    const tasks = Array.from({ length: 100_000 }, (_, i) => ({
      name: `t${i}`,
      run: "x",
      ...(i > 0 ? { after: `t${i - 1}` } : {}),
    }));
    expect(buildRun(readRunBody({ tasks }), { cwd: "/" }).spec.groups).toHaveLength(100_000);
    tasks[0]!.after = "t99999";
    expect(() => buildRun(readRunBody({ tasks }), { cwd: "/" })).toThrow(/t\d+ → .*… → t\d+/);
    // quadratic work would take hours: even a busy machine stays within the limit
  }, 120_000);

  it("wide graphs and many keys stay linear", () => {
    const names = Array.from({ length: 20_000 }, (_, i) => `t${i}`);
    const tasks = [...names.map((name) => ({ name, run: "x" })), { name: "end", run: "x", after: names }];
    expect(buildRun(readRunBody({ tasks }), { cwd: "/" }).spec.groups.at(-1)!.after).toHaveLength(20_000);
    const env = names.map((name) => `      ${name}: x`).join("\n");
    expect(Object.keys(build(`tasks:\n  - run: a\n    env:\n${env}\n`).spec.groups[0]!.env!)).toHaveLength(20_000);
  });
});
