import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { connect } from "../../src/client/index.ts";
import { createHome, type Outcome, ROOT, type SlipwayHome } from "./slipway-process.ts";

/** Bad input gets a clear error (what, where, what to do), exit status 2, and nothing is submitted. */

let slipway: SlipwayHome;

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(join(slipway.home, "clusters.yaml"), "clusters: { local: { resources: { cpu: 2, mem: 2G } } }\n");
  await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

const write = async (name: string, content: string | Uint8Array): Promise<string> => {
  await writeFile(join(slipway.cwd, name), content);
  return name;
};
const newest = async (): Promise<number> => (await slipway.json<RunView[]>(["list", "--limit", "1"]))[0]?.id ?? 0;

const isClear = (outcome: Outcome, what: string): void => {
  expect(outcome.stderr, what).toMatch(/^error: \S/);
  expect(outcome.stderr, what).not.toMatch(/\n\s+at .*:\d+:\d+|something that should not happen|node:internal/);
  expect(outcome.stdout, what).toBe("");
};

/** With `submit` and `run` in turn: both check before they send anything. */
let turn = 0;
const refused = async (args: string[], ...parts: (string | RegExp)[]): Promise<Outcome> => {
  const outcome = await slipway.run([turn++ % 2 === 0 ? "submit" : "run", ...args]);
  isClear(outcome, args.join(" ").slice(0, 200));
  expect(outcome.status, outcome.stderr).toBe(2);
  for (const part of parts) expect(outcome.stderr).toMatch(part);
  return outcome;
};

const file = async (text: string, ...parts: (string | RegExp)[]): Promise<Outcome> =>
  refused([await write("bad.yaml", text)], ...parts);

const command = (options: string[], ...parts: (string | RegExp)[]): Promise<Outcome> =>
  refused([...options, "--", "true"], ...parts);

describe("what is wrong before anything is sent", () => {
  afterAll(async () => {
    expect(await newest()).toBe(0);
  });

  it("not YAML", async () => {
    await file("tasks: [\n  {run: x\n", /bad\.yaml:\d+:\d+: not valid YAML/);
    await file("tasks:\n\t- run: x\n", /bad\.yaml:2/);
    await file("\u0000\u0001\u0002", /bad\.yaml/);
    await refused(
      [await write("bytes.yaml", Buffer.from([0x74, 0x3a, 0x20, 0xff, 0xfe, 0x0a]))],
      /bytes\.yaml/,
      /UTF-8/,
    );
    await file("", /bad\.yaml/);
    await file("just words\n", /bad\.yaml/);
    await file("a: &a [*a]\ntasks: [{run: x}]\n", /bad\.yaml/);
  });

  it("all of it at once, with the lines; validate and --dry-run say the same, and show a plan of what is right", async () => {
    const bad = "tasks:\n  - run: ./x {itme}\n    mem: 2X\n  - { run: y, cluster: lokal, cpus: -1 }\n";
    const { stderr } = await file(bad, /bad\.yaml:2:10: [^]*bad\.yaml:3:10: [^]*bad\.yaml:4:37: [^]*3 errors/);
    for (const args of [["validate"], ["run", "--dry-run"], ["submit", "--dry-run"]])
      expect(await slipway.run([...args, "bad.yaml"])).toMatchObject({ status: 2, stdout: "", stderr });
    const { status, stderr: json } = await slipway.run(["validate", "--json", "bad.yaml"]);
    const { errors } = JSON.parse(json) as { errors: { facts: { at: { line: number } } }[] };
    expect([status, errors.map(({ facts }) => facts.at.line)]).toEqual([2, [2, 3, 4]]);
    await write("lokal.yaml", "tasks:\n  - { run: x, cluster: lokal }\n  - { run: x, mem: 3G }\n");
    expect(await slipway.run(["validate", "lokal.yaml"])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/lokal\.yaml:2:24: there is no cluster[^]*lokal\.yaml:3:20: [^]*mem 3G/),
    });

    await write("names.txt", "a b\nc\n");
    await write(
      "good.yaml",
      "tasks:\n  - { name: n, each: { lines: names.txt }, run: 'echo {item} {run}', mem: 1G }\n  - { name: z, after: n, run: [z] }\n",
    );
    const { stdout } = await slipway.run(["validate", "good.yaml"]);
    expect(stdout).toMatch(/3 tasks; nothing was submitted[^]*n +2 +cpus 1, mem 1G +local\/[^]*echo 'a b' \{run\}/);
    const { plan } = await slipway.json<{ plan: unknown }>(["run", "--dry-run", "good.yaml"]);
    expect(plan).toMatchObject({ tasks: 3, groups: [{ tasks: 2, cluster: "local", via: "pilot" }, { after: ["n"] }] });
    const client = connect({ home: slipway.home });
    try {
      const text = bad.replace("./x {itme}", "{item} -x");
      expect(await client.validate({ text })).toMatchObject({
        valid: false,
        plan: null,
        errors: [{ line: 2, hint: 'Quote this: "{item} -x"', text: "  - run: {item} -x" }],
      });
      expect(await client.validate({ document: { tasks: [{ run: "x", mem: "9T" }, { run: 3 }] } })).toMatchObject({
        errors: [{ code: "bad-value", line: null }],
      });
      expect(await client.validate({ document: { tasks: [{ run: "x", each: { array: "1-9" } }] } })).toMatchObject({
        valid: true,
        errors: [],
        plan: { tasks: 9, groups: [{ first: [{ task: 1, item: "1" }, {}, {}] }] },
      });
      await expect(client.validate({})).rejects.toMatchObject({ code: "bad-request" });
    } finally {
      client.close();
    }
  });

  it("an unknown key names file, line and the nearest known one", async () => {
    await file("tasks:\n  - run: x\n    comand: y\n", /bad\.yaml:3:\d+: unknown key 'comand'/);
    await file("tasks:\n  - run: x\n    retry: 3\n", /bad\.yaml:3/, /retries/);
    await file("tasks:\n  - run: x\n    time_limit: 3\n", /time-limit/);
    await file("tasks:\n  - command: x\n", /unknown key 'command'; did you mean 'run'/);
    await file("tasks:\n  - {run: x, needs: y}\n", /did you mean 'after'/);
    await file("naem: x\ntasks:\n  - run: x\n", /bad\.yaml:1/, /did you mean '?name/);
    await file("tasks:\n  - run: x\n    each: {aray: 1-3}\n", /array/);
  });

  it("a wrong type names file, line and key", async () => {
    await file(
      "tasks:\n  - run: x\n    retries: many\n",
      /bad\.yaml:3:14: retries: must be a whole number, not "many"/,
    );
    await file("tasks:\n  - run: x\n    env: [1]\n", /bad\.yaml:3/, /env/);
    await file("tasks: x\n", /bad\.yaml:1/, /tasks/);
    await file("tasks:\n  - 3\n", /bad\.yaml:2/);
    await file("tasks:\n  - run: {a: b}\n", /bad\.yaml:2/, /run/);
    await file("tasks:\n  - run: x\n    pin: maybe\n", /bad\.yaml:3/, /pin/);
    await file("tasks: []\n", /tasks/);
    await file("name: x\n", /tasks/);
    await file("tasks:\n  - name: lonely\n", /run/);
  });

  it("the same key twice, the same name twice", async () => {
    await file("tasks:\n  - run: x\n    run: y\n", /bad\.yaml:3/, /'run' appears twice/);
    await file("tasks:\n  - {name: a, run: x}\n  - {name: a, run: y}\n", /bad\.yaml:3/, /'a' is already/);
  });

  it("what is not supported yet is refused, never ignored", async () => {
    await file('tasks:\n  - {run: x, in: ["client:a > task:b"]}\n', /not supported yet/);
  });

  it("options for a manager need a job of the task's own", async () => {
    await command(["-b", "-A account"], /goes with via: job/);
    await file("tasks:\n  - {run: x, partition: p}\n", /goes with via: job/);
  });

  it("negative, absurd and impossible resources", async () => {
    await file("tasks:\n  - {run: x, cpus: -1}\n", /bad\.yaml:2/, /cpus/);
    await file("tasks:\n  - {run: x, mem: -5G}\n", /mem/);
    await command(["--cpus", "-2"], /cpus/);
    await command(["--cpus", "1e99"], /cpus/);
    await command(["--cpus", "NaN"], /cpus/);
    await command(["--mem", "12 parsecs"], /mem/);
    await command(["--mem", "9999999999T"], /mem/);
    await command(["--gpus", "1.5"], /gpus/);
    await command(["--resource", "licence=-1"], /licence/);
    await command(["--resource", "licence"], /licence/);
    await command(["--time-limit", "soon"], /time-limit/);
    await command(["--time-limit", "0"], /time-limit/);
    await command(["--time-limit", "04:00"], /time-limit/);
    await command(["--retries", "-1"], /retries/);
    await command(["--retries", "1.5"], /retries/);
    await command(["--priority", "1e300"], /priority/);
    await command(["--max-fails", "-1"], /max-fails/);
  });

  it("more than there is: names resource, amount and the largest available", async () => {
    await command(["--cpus", "64"], /task .*cpus 64; the largest available is 2/);
    await command(["--mem", "100G"], /mem 100G.*2G/);
    await command(["--gpus", "1"], /gpus 1.*(0|none)/);
    await command(["--resource", "licence=1"], /licence 1.*(0|none)/);
    await file("tasks:\n  - {run: x}\n  - {name: greedy, run: x, cpus: 3}\n", /greedy/, /cpus 3.*2/);
    await write("greedy.json", '[{"mem": "1G"}, {"mem": "64G"}]');
    await command(["--from-json", "greedy.json", "--mem", "{item.mem}"], /mem 64G.*2G/);
  });

  it("an array of 10^9, and other arrays that are none", async () => {
    await command(["--array", "1-1000000000"], /1000000000 tasks; at most 10000000/);
    await file("tasks:\n  - {run: x, each: {array: 1-1000000000}}\n", /at most 10000000/);
    for (const array of ["5-1", "a-b", "1-10:0", "1-10:-1", "", "1-", "-5", "1,,2", "1-99999999999999999999", "1.5"])
      await command([`--array=${array}`], /array/);
  });

  it("an unknown placeholder, and one without a value", async () => {
    await refused(["--array", "1-3", "--", "echo", "{itme}"], /unknown placeholder \{itme\}; did you mean \{item\}/);
    await file("tasks:\n  - run: echo {nam}\n", /bad\.yaml:2/, /\{name\}/);
    await refused(["--", "echo", "{item}"], /\{item\} has no value/);
    await refused(["--array", "1-3", "--", "echo", "{item.x}"], /\{item\.x\}/);
    await command(["--stdout", "out/{what}.txt"], /unknown placeholder \{what\}/);
    await command(["--env", "A={nope}"], /unknown placeholder \{nope\}/);
    await command(["--array", "1-3", "--mem", "{task}M"], /mem/);
  });

  it("items that cannot be read", async () => {
    await command(["--each-line", "nothing-here.txt"], /cannot read .*nothing-here\.txt: there is no such file/);
    await command(["--from-json", "nothing-here.json"], /nothing-here\.json/);
    await command(["--each-line", "."], /directory/);
    await command(["--each-line", await write("empty.txt", "")], /empty/);
    await command(["--from-json", await write("empty.json", "[]")], /no items/);
    await command(["--from-json", await write("half.json", '[{"a": 1},')], /half\.json:1/, /not JSON/);
    await command(["--from-json", await write("lines.json", '{"a": 1}\n{"a": \n')], /lines\.json:2/);
    await command(["--each-line", await write("latin1.txt", Buffer.from("ok\nna\xefve\n", "latin1"))], /UTF-8/);
    await command(["--each-line", await write("long.txt", `a\n${"x".repeat(200_000)}\n`)], /long\.txt:2/);
    await write("mixed.json", '[{"mem": "1M"}, {"size": 3}]');
    await command(["--from-json", "mixed.json", "--mem", "{item.mem}"], /mem/);
    await write("nonsense.json", '[{"mem": "1M"}, {"mem": "a lot"}]');
    await command(["--from-json", "nonsense.json", "--mem", "{item.mem}"], /a lot/);
    await command(["--array", "1-3", "--each-line", "empty.txt"], /array/);
    const none = await slipway.run(["run", "--stdin", "--", "echo", "{item}"], { stdin: "" });
    expect(none.status).toBe(2);
    expect(none.stderr).toContain("no items");
  });

  it("an empty command", async () => {
    await file("tasks:\n  - run: ''\n", /bad\.yaml:2/, /command is empty/);
    await file("tasks:\n  - run: '   '\n", /command is empty/);
    await file("tasks:\n  - run: []\n", /command is empty/);
    await file("tasks:\n  - run: ['']\n", /command is empty/);
    await refused(["--", ""], /command is empty/);
    await refused(["--"], /nothing to run/);
    await refused([], /nothing to run/);
  });

  it("a NUL anywhere in what a process would get", async () => {
    await file('tasks:\n  - run: [echo, "a\\0b"]\n', /bad\.yaml:2/, /NUL/);
    await file('tasks:\n  - {run: x, env: {A: "\\0"}}\n', /NUL/);
    await file('tasks:\n  - {run: x, cwd: "a\\0"}\n', /NUL/);
    await file('tasks:\n  - {run: "echo {item}", each: {values: [a, "b\\0c"]}}\n', /NUL/);
    await write("nul.json", '["ok", "b\\u0000c"]');
    await refused(["--from-json", "nul.json", "--", "echo", "{item}"], /nul\.json/, /NUL/);
    await refused(["--each-line", await write("nul.txt", "a\nb\0c\n"), "--", "echo", "{item}"], /nul\.txt:2/, /NUL/);
    const halves = await write("surrogate.json", String.raw`["\ud800"]`);
    await refused(["--from-json", halves, "--", "echo", "{item}"], /surrogate/);
  });

  it("a name with a line break, or of 5,000 characters", async () => {
    await command(["--name", "two\nlines"], /name.*line break/);
    await command(["--name", "n".repeat(5000)], /name.*5000 characters; at most 200/);
    await command(["--name", ""], /name/);
    await command(["--name", "red \u001b[31m"], /control character/);
    await file(`tasks:\n  - {name: ${"n".repeat(5000)}, run: x}\n`, /bad\.yaml:2/, /at most 200/);
    await file('tasks:\n  - {name: "a\\nb", run: x}\n', /bad\.yaml:2/, /line break/);
  });

  it("dependencies that cannot be", async () => {
    await file("tasks:\n  - {name: a, run: x, after: b}\n  - {name: b, run: x, after: a}\n", /bad\.yaml/, /a.*b.*a/);
    await file("tasks:\n  - {name: a, run: x, after: a}\n", /wait for each other: a/);
    await file("tasks:\n  - {name: prepare, run: x}\n  - {run: x, after: prepaer}\n", /'prepaer'.*prepare/);
    await file("tasks:\n  - {run: x, after: 'run:999999'}\n", /no run 999999/);
    await file("tasks:\n  - {name: a, run: x}\n  - {run: x, after: {a: maybe}}\n", /bad\.yaml:3/);
    await command(["--after", "999999"], /no run 999999/);
    await command(["--after", "soon"], /after/);
  });

  it("clusters, queues and executors that do not exist", async () => {
    await command(["--cluster", "locla"], /no cluster 'locla'/, /local/);
    await command(["--queue", "nope"], /queue/);
    await command(["--executor", "docker"], /executor/);
    await command(["--export", "1BAD=,"], /export/);
    await command(["--env", "NOVALUE"], /env/);
    await command(["--env", "=x"], /env/);
    await command(["--clusters", "absent.yaml"], /absent\.yaml/);
  });

  it("a file that is not there, a directory, a run's file with arguments", async () => {
    await refused(["absent.yaml"], /absent\.yaml/, /no such file/);
    await mkdir(join(slipway.cwd, "dir.yaml"));
    await refused(["dir.yaml"], /dir\.yaml/, /directory/);
    await refused([await write("good.yaml", "tasks: [{run: 'true'}]\n"), "extra"], /takes no arguments/);
  });

  it("aliases that multiply, deep nesting and a file of 65 MB are refused before they cost memory", async () => {
    const levels = Array.from(
      { length: 9 },
      (_, i) => `x-${i + 1}: &a${i + 1} [${Array(10).fill(`*a${i}`).join(", ")}]`,
    );
    await file(`x-0: &a0 [1]\n${levels.join("\n")}\ntasks: [{run: x}]\n`, /aliases expand/);
    await file(`tasks: ${"[".repeat(5000)}${"]".repeat(5000)}\n`, /nested/);
    await file(`# ${"x".repeat(65 * 2 ** 20)}\ntasks: [{run: x}]\n`, /65M.*64M/);
  });
});

describe("what only the task can find out", () => {
  const task = async (args: string[]): Promise<TaskView> => {
    const { id } = await slipway.json<RunView>(["run", ...args], { statuses: [1] });
    return slipway.json<TaskView>(["show", `${id}.0`]);
  };

  it("a command that does not exist: 127, and says so", async () => {
    const missing = await task(["--", "no-such-program-anywhere", "x"]);
    expect(missing).toMatchObject({ state: "FAILED", exitCode: 127 });
    expect(missing.reason).toContain("127");
    expect(missing.reason).toContain("not found");
    const text = await slipway.run(["run", "--", "no-such-program-anywhere"]);
    expect(text.status).toBe(1);
    expect(text.stderr).toContain("no-such-program-anywhere");
    const shell = await task([await write("missing.yaml", "tasks: [{run: no-such-program-anywhere}]\n")]);
    expect(shell).toMatchObject({ state: "FAILED", exitCode: 127 });
    // the rest of the shell's message is its own affair: dash says "Permission denied" if PATH has a closed directory
    expect(shell.lastStderr).toContain("no-such-program-anywhere");
  });

  it("a command that is not executable: 126", async () => {
    const script = join(slipway.cwd, await write("plain.sh", "#!/bin/sh\nexit 0\n"));
    await chmod(script, 0o644);
    const found = await task(["--", script]);
    expect(found).toMatchObject({ state: "FAILED", exitCode: 126 });
    expect(found.reason).toContain("126");
  });

  it("a directory that does not exist", async () => {
    await command(["--cwd", "/no/such/dir"], /no directory \/no\/such\/dir/);
    const late = await task([await write("cwd.yaml", "tasks: [{run: 'true', cwd: '/no/such/{task}'}]\n")]);
    expect(late).toMatchObject({ state: "FAILED", exitCode: null });
    expect(late.reason).toContain("/no/such/0");
    expect(late.reason).toMatch(/no such|does not exist/);
  });

  it("an output path that cannot be written", async () => {
    await write("blocker", "a file, no directory");
    for (const path of ["/proc/nope/out.txt", "blocker/out.txt", "."]) {
      const lost = await task(["--stdout", path, "--", "true"]);
      expect(lost, path).toMatchObject({ state: "FAILED", exitCode: null });
      expect(lost.reason, path).toContain(resolve(slipway.cwd, path));
    }
    const both = await task(["--stderr", "/proc/nope/err.txt", "--", "true"]);
    expect(both.reason).toContain("/proc/nope/err.txt");
  });
});

describe("a home that cannot be used", () => {
  it("is a file, lies below one, or where nothing can be made", async () => {
    await write("not-a-dir", "x");
    for (const home of [join(slipway.cwd, "not-a-dir"), join(slipway.cwd, "not-a-dir", "home"), "/proc/nope"])
      for (const verb of [["up"], ["run", "--", "true"]]) {
        const outcome = await slipway.run([...verb.slice(0, 1), "--home", home, ...verb.slice(1)]);
        isClear(outcome, home);
        expect(outcome.status).toBe(3);
        expect(outcome.stderr).toContain(`the home ${home} cannot be used`);
      }
  });

  it("holds other things and is open to others: it is left exactly as it was", async () => {
    const home = join(slipway.root, "project");
    await mkdir(home);
    await chmod(home, 0o755);
    await writeFile(join(home, "thesis.txt"), "precious");
    for (const verb of ["up", "run"]) {
      const outcome = await slipway.run([verb, "--home", home, ...(verb === "run" ? ["--", "true"] : [])]);
      isClear(outcome, verb);
      expect(outcome.status).toBe(3);
      expect(outcome.stderr).toContain("not Slipway's");
    }
    expect((await stat(home)).mode & 0o777).toBe(0o755);
    expect(await readdir(home)).toEqual(["thesis.txt"]);
  });

  it("is on a read-only disk: says so, and nothing else breaks", async (ctx) => {
    const home = join(slipway.root, "read-only");
    await mkdir(home);
    const script = `mount -t tmpfs -o ro none "$1" && shift && exec "$@"`;
    const inside = (args: string[]): ReturnType<typeof spawnSync> =>
      spawnSync(
        "unshare",
        ["-m", "sh", "-c", script, "sh", home, process.execPath, join(ROOT, "bin/slipway"), ...args],
        {
          env: { ...process.env, SLIPWAY_HOME: home, NO_COLOR: "1" },
          encoding: "utf8",
          cwd: slipway.cwd,
        },
      );
    const probe = spawnSync("unshare", ["-m", "sh", "-c", script, "sh", home, "true"]);
    if (probe.status !== 0) ctx.skip("mounts are not permitted here (unshare -m, tmpfs)");
    for (const args of [["up"], ["run", "--", "true"]]) {
      const outcome = inside(args) as unknown as Outcome;
      isClear(outcome, args.join(" "));
      expect(outcome.status).toBe(3);
      expect(outcome.stderr).toContain(`the home ${home} cannot be used`);
      expect(outcome.stderr).toMatch(/read-only/i);
    }
  });
});

describe("a clusters.yaml that is wrong", () => {
  it("stops `up` and `run` with file, line and key", async () => {
    const home = join(slipway.root, "odd-home");
    await mkdir(home);
    const clusters = join(home, "clusters.yaml");
    for (const [text, ...parts] of [
      ["clusters: {local: {resorces: {cpu: 2}}}\n", /clusters\.yaml:1/, /resources/],
      ["clusters:\n  local:\n    resources: {cpu: -2}\n", /clusters\.yaml:3/, /cpu/],
      ["clusters: {hpc: {type: slrum}}\n", /slurm/],
      ["default: nowhere\n", /nowhere/],
      ["clusters: [\n", /clusters\.yaml:\d+/],
    ] as const) {
      await writeFile(clusters, text);
      for (const verb of [["up"], ["run", "--", "true"]]) {
        const outcome = await slipway.run([...verb.slice(0, 1), "--home", home, ...verb.slice(1)]);
        isClear(outcome, text);
        expect(outcome.status, outcome.stderr).toBe(2);
        for (const part of parts) expect(outcome.stderr).toMatch(part);
      }
    }
    expect(existsSync(join(home, "endpoint.json"))).toBe(false);
  });
});

describe("garbage", () => {
  /** A small seeded generator: the same files on every machine. */
  const random = (seed: number) => (): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return seed / 2 ** 32;
  };
  const sound = `name: sound
defaults: { cpus: 1, retries: 1, env: { A: "1" } }
max-fails: 3
tasks:
  - name: first
    each: { array: 1-4 }
    run: echo {item} {name} > /dev/null
    mem: 10M
  - name: second
    after: { first: any }
    run: [sh, -c, "exit 0"]
    time-limit: 10m
    stdout: out/{task}.txt
`;
  const pieces = [
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "\n",
    "  ",
    "'",
    '"',
    "&a",
    "*a",
    "<<: ",
    "!!binary ",
    "|",
    ">",
    "%",
    "\t",
  ];
  const more = [
    "null",
    "-1",
    "1e999",
    "{item.x}",
    "{{",
    "\u0000",
    "\u{1f600}",
    "\u202e",
    "__proto__: 1",
    "~",
    "0x",
    "\uFEFF",
  ];

  const mutated = (seed: number): string => {
    const next = random(seed);
    let text = sound;
    for (let n = 1 + Math.floor(next() * 6); n > 0; n--) {
      const at = Math.floor(next() * text.length);
      const length = Math.floor(next() * 12);
      const all = [...pieces, ...more];
      const piece = all[Math.floor(next() * all.length)]!;
      if (next() < 0.3) text = text.slice(0, at) + text.slice(at + length);
      else if (next() < 0.6) text = text.slice(0, at) + piece + text.slice(at);
      else text = text.slice(0, at) + piece + text.slice(at + length);
    }
    return text;
  };

  it("thirty damaged files: submitted or refused with a clear error, never anything else", async () => {
    const outcomes = { submitted: 0, refused: 0 };
    const seeds = Array.from({ length: 30 }, (_, i) => i + 1);
    const one = async (seed: number): Promise<void> => {
      const text = mutated(seed);
      const name = await write(`garbage-${seed}.yaml`, text);
      const outcome = await slipway.run(["submit", name]);
      const what = `seed ${seed}:\n${text}\n${outcome.stderr}`;
      if (outcome.status === 0) outcomes.submitted++;
      else {
        outcomes.refused++;
        isClear(outcome, what);
        expect(outcome.status, what).toBe(2);
      }
    };
    for (let at = 0; at < seeds.length; at += 3) await Promise.all(seeds.slice(at, at + 3).map(one));
    expect(outcomes.refused).toBeGreaterThan(5);
    // The server is as well as before.
    expect((await slipway.run(["run", "--quiet", "--", "true"])).status).toBe(0);
  });
});
