import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { createHome, ROOT, type RunOptions, type SlipwayHome } from "./slipway-process.ts";

/** Where tasks come from, how they are numbered, and what reaches the process: arguments, directory, environment. */

let slipway: SlipwayHome;

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(join(slipway.home, "clusters.yaml"), "clusters: { local: { resources: { cpu: 4, mem: 1G } } }\n");
  await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

const write = async (name: string, content: string | Uint8Array): Promise<string> => {
  await writeFile(join(slipway.cwd, name), content);
  return name;
};
/** Runs to a good end and returns the run and everything it wrote, `TASK: line` sorted by task. */
const outputOf = async (args: string[], options: RunOptions = {}): Promise<{ run: RunView; lines: string[] }> => {
  const run = await slipway.json<RunView>(["run", ...args], options);
  const { stdout } = await slipway.run(["logs", String(run.id), "--json"]);
  const lines = stdout
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { task: string; line: string });
  return { run, lines: lines.map(({ task, line }) => `${task.split(".")[1]}: ${line}`) };
};
const linesOf = async (args: string[], options?: RunOptions): Promise<string[]> =>
  (await outputOf(args, options)).lines;
const task = (id: string): Promise<TaskView> => slipway.json<TaskView>(["show", id]);

describe("--each and --colsep", () => {
  it("a task for each combination, the last key fastest; {item} and SLIPWAY_ITEM are the combination", async () => {
    const args = ["--each", "seed=1-2", "--each", "model=a b,c", "--", "sh", "-c", 'echo "$1 $SLIPWAY_ITEM"'];
    expect(await linesOf([...args, "sh", "{item.model}{item.seed}"])).toEqual([
      '0: a b1 {"seed":1,"model":"a b"}',
      '1: c1 {"seed":1,"model":"c"}',
      '2: a b2 {"seed":2,"model":"a b"}',
      '3: c2 {"seed":2,"model":"c"}',
    ]);
  });

  it("columns of lines, of a file and of standard input", async () => {
    const file = await write("pairs.csv", "a,b c\nd,e\n");
    const args = ["--colsep", ",", "--", "echo", "{item.1}", "{item.0}", "{item}"];
    const expected = ["0: b c a a,b c", "1: e d d,e"];
    expect(await linesOf(["--each-line", file, ...args])).toEqual(expected);
    expect(await linesOf(["--stdin", ...args], { stdin: "a,b c\nd,e\n" })).toEqual(expected);
    const { status, stderr } = await slipway.run([
      "run",
      "--each-line",
      file,
      "--colsep",
      ",",
      "--",
      "echo",
      "{item.2}",
    ]);
    expect([status, stderr]).toEqual([2, expect.stringContaining("pairs.csv:1")]);
  });
});

describe("--array", () => {
  it.each([
    ["7", ["7: 7"]],
    ["0-2", ["0: 0", "1: 1", "2: 2"]],
    ["5-25:10", ["5: 5", "15: 15", "25: 25"]],
    ["10-15:4", ["10: 10", "14: 14"]],
    // Several ranges have no common step: such tasks are counted from 0.
    ["1-2,9", ["0: 1", "1: 2", "2: 9"]],
  ])("%s", async (array, expected) => {
    expect(await linesOf(["--array", array, "--", "echo", "{item}"])).toEqual(expected);
  });

  it("show RUN.17 is the task of item 17, and its own number is what it gets", async () => {
    const { run } = await outputOf(["--array", "15-19:2", "--", "sh", "-c", 'test "$SLIPWAY_TASK" = {item}']);
    expect(run.counts).toEqual({ DONE: 3 });
    expect(await task(`${run.id}.17`)).toMatchObject({ id: `${run.id}.17`, item: "17", name: "sh[17]" });
    expect((await slipway.run(["show", `${run.id}.0`])).status).toBe(2);
    expect((await slipway.run(["show", `${run.id}.16`])).status).toBe(2);
  });

  it("1,000,000 tasks go through the null executor", async () => {
    const started = performance.now();
    const run = await slipway.json<RunView>(
      ["run", "--array", "1-1000000", "--executor", "null", "--", "x", "{item}"],
      {
        timeoutMs: 110_000,
      },
    );
    expect(run).toMatchObject({ state: "DONE", total: 1_000_000, counts: { DONE: 1_000_000 } });
    console.log(`1,000,000 array tasks: ${((performance.now() - started) / 1000).toFixed(1)} s`);
    expect(await task(`${run.id}.777777`)).toMatchObject({ state: "DONE", command: ["x", "777777"] });
    expect((await slipway.run(["show", `${run.id}.1000001`])).status).toBe(2);
  });
});

describe("--each-line, --from-json, --stdin", () => {
  it("each line is an item exactly as it is: blanks, quotes, UTF-8, empty lines, no newline at the end", async () => {
    const items = ["plain", "  blanks  ", 'it\'s "quoted" $HOME `x` \\ *', "", "grüße 🚢", "-n", "{run} {{x}}", "last"];
    const file = await write("items.txt", items.join("\n"));
    const args = ["--each-line", file, "--", "printf", "%s\\n", "<{item}>"];
    expect(await linesOf(args)).toEqual(items.map((item, i) => `${i}: <${item}>`));
  });

  it("Windows line ends are not part of an item", async () => {
    const file = await write("crlf.txt", "one\r\ntwo\r\n");
    expect(await linesOf(["--each-line", file, "--", "printf", "[%s]", "{item}"])).toEqual(["0: [one]", "1: [two]"]);
  });

  it("--stdin reads lines; a file's `lines: -` too", async () => {
    const stdin = "alpha\nbeta gamma\n";
    expect(await linesOf(["--stdin", "--", "echo", "{item}"], { stdin })).toEqual(["0: alpha", "1: beta gamma"]);
    const file = await write("stdin.yaml", "tasks: [{name: t, each: {lines: '-'}, run: 'echo {item}'}]\n");
    expect(await linesOf([file], { stdin })).toEqual(["0: alpha", "1: beta gamma"]);
  });

  it("pipes are files too: a named one, and <(command)", async () => {
    const fifo = join(slipway.cwd, "pipe");
    execFileSync("mkfifo", [fifo]);
    const writer = spawn("sh", ["-c", `printf 'one\ntwo\n' > '${fifo}'`], { stdio: "ignore" });
    expect(await linesOf(["--each-line", "pipe", "--", "echo", "{item}"])).toEqual(["0: one", "1: two"]);
    expect(writer.exitCode ?? (await once(writer, "exit"))[0]).toBe(0);
    const script = `"$0" "$1" run --quiet --each-line <(seq 3) --stdout subst/{item} -- echo {item} && cat subst/*`;
    const bash = spawnSync("bash", ["-c", script, process.execPath, join(ROOT, "bin/slipway")], {
      cwd: slipway.cwd,
      env: { ...process.env, SLIPWAY_HOME: slipway.home },
      encoding: "utf8",
    });
    expect(bash).toMatchObject({ status: 0, stdout: "1\n2\n3\n", stderr: "" });
  });

  it("--from-json takes an array or JSON lines; fields by name, also inside others; values as compact JSON", async () => {
    const values = [
      { x: "a b", n: { y: [1, 2.5] } },
      { x: true, n: { y: null } },
    ];
    const array = await write("array.json", JSON.stringify(values, null, 2));
    const lines = await write("lines.json", values.map((value) => JSON.stringify(value)).join("\n"));
    for (const file of [array, lines]) {
      const args = ["--from-json", file, "--", "printf", "%s|", "{item.x}", "{item.n.y}", "{item}"];
      expect(await linesOf(args), file).toEqual([
        '0: a b|[1,2.5]|{"x":"a b","n":{"y":[1,2.5]}}|',
        '1: true|null|{"x":true,"n":{"y":null}}|',
      ]);
    }
    const plain = await write("plain.json", '["one", 2, null, "grüße"]');
    expect(await linesOf(["--from-json", plain, "--", "echo", "{item}"])).toEqual([
      "0: one",
      "1: 2",
      "2: null",
      "3: grüße",
    ]);
  });

  it("amounts may come from the item", async () => {
    const file = await write(
      "amounts.json",
      '[{"mem": "10M", "c": 1}, {"mem": "1.5G", "c": 2}, {"mem": 30, "c": 0.5}]',
    );
    const over = await slipway.run(["run", "--from-json", file, "--mem", "{item.mem}", "--", "true"]);
    expect(over.status).toBe(2);
    expect(over.stderr).toMatch(/mem 1\.5G.*largest available is 1G/);
    await write("amounts.json", '[{"mem": "10M", "c": 1}, {"mem": "0.5G", "c": 2}, {"mem": 30, "c": 0.5}]');
    const options = ["--mem", "{item.mem}", "--cpus", "{item.c}"];
    const { run, lines } = await outputOf([
      "--from-json",
      file,
      ...options,
      "--",
      "sh",
      "-c",
      "echo $SLIPWAY_MEM $SLIPWAY_CPUS",
    ]);
    expect(lines).toEqual([`0: ${10 * 2 ** 20} 1`, `1: ${512 * 2 ** 20} 2`, `2: ${30 * 2 ** 20} 0.5`]);
    expect((await task(`${run.id}.1`)).resources).toEqual({ cpus: 2, mem: 512 * 2 ** 20 });
  });

  it("1,000,000 lines are streamed", async () => {
    const file = join(slipway.cwd, "million.txt");
    const stream = createWriteStream(file);
    for (let at = 0; at < 1_000_000; at += 10_000) {
      const lines = Array.from({ length: 10_000 }, (_, i) => `item-${at + i}\n`).join("");
      if (!stream.write(lines)) await once(stream, "drain");
    }
    stream.end();
    await once(stream, "finish");
    const started = performance.now();
    const args = ["run", "--each-line", file, "--executor", "null", "--", "x", "{item}"];
    const run = await slipway.json<RunView>(args, { timeoutMs: 110_000 });
    expect(run).toMatchObject({ state: "DONE", total: 1_000_000, counts: { DONE: 1_000_000 } });
    console.log(`1,000,000 lines: ${((performance.now() - started) / 1000).toFixed(1)} s`);
    expect(await task(`${run.id}.999999`)).toMatchObject({ item: "item-999999", command: ["x", "item-999999"] });
  });
});

describe("a file", () => {
  it("values are items, maps have fields, scalars are taken as written; tasks are numbered through", async () => {
    await write(
      "values.yaml",
      `name: values
tasks:
  - name: plain
    each: { values: [a b, 007, 0.10, true, "it's"] }
    run: printf %s {item}
  - name: maps
    each: { values: [{ m: x, n: 1 }, { m: "y z", n: 2 }] }
    run: [printf, "%s", "{item.m}-{item.n}"]
  - name: alone
    run: echo {name} {task}
`,
    );
    const { run, lines } = await outputOf(["values.yaml"]);
    expect(lines).toEqual(["0: a b", "1: 007", "2: 0.10", "3: true", "4: it's", "5: x-1", "6: y z-2", "7: alone 7"]);
    expect(run).toMatchObject({ name: "values", total: 8 });
    expect((await task(`${run.id}.6`)).name).toContain("maps[");
  });

  it("lines and json of a file start in the run's directory, as do all relative paths", async () => {
    await mkdir(join(slipway.cwd, "sub/deep"), { recursive: true });
    await write("sub/here.txt", "from sub\n");
    await write("sub/run.yaml", "cwd: sub\ntasks: [{name: t, each: {lines: here.txt}, run: 'echo {item}; pwd'}]\n");
    const sub = await realpath(join(slipway.cwd, "sub"));
    expect(await linesOf(["sub/run.yaml"])).toEqual(["0: from sub", `0: ${sub}`]);
  });

  it("defaults, options over the file, and the name from the file's", async () => {
    await write(
      "named.yaml",
      "defaults: {retries: 1, env: {A: file, B: file}}\ntasks: [{name: t, run: 'echo $A $B'}]\n",
    );
    const { run, lines } = await outputOf(["named.yaml", "--env", "A=option"]);
    expect(lines).toEqual(["0: option file"]);
    expect(run.name).toBe("named");
    expect((await outputOf(["named.yaml", "--name", "other"])).run.name).toBe("other");
  });

  it("JSON is a run's file too", async () => {
    const file = await write("run.json", JSON.stringify({ tasks: [{ run: ["echo", "json"] }] }));
    expect(await linesOf([file])).toEqual(["0: json"]);
  });
});

describe("placeholders", () => {
  it("{run} {task} {name} {attempt} {item} {cwd} in commands, env and paths; {{ }} are braces", async () => {
    await mkdir(join(slipway.cwd, "out"), { recursive: true });
    await write(
      "all.yaml",
      `tasks:
  - name: first
    run: 'true'
  - name: every
    each: { values: [v w] }
    cwd: out
    env: { ALL: "{run}/{task}/{name}/{attempt}/{item}/{cwd}", BRACES: "{{item}}" }
    run: [sh, -c, 'printf "%s\\n" "$0" "$1" "$ALL" "$BRACES" "$(pwd)"', "{run} {task} {name} {attempt} {item} {cwd}", "{{x}} {{{item}}}"]
    stdout: "{cwd}/{run}.{task}.{name}.{attempt}.txt"
`,
    );
    const run = await slipway.json<RunView>(["run", "all.yaml"]);
    const out = await realpath(join(slipway.cwd, "out"));
    const text = await readFile(join(out, `${run.id}.1.every.1.txt`), "utf8");
    expect(text.split("\n")).toEqual([
      `${run.id} 1 every 1 v w ${out}`,
      "{x} {v w}",
      `${run.id}/1/every/1/v w/${out}`,
      "{item}",
      out,
      "",
    ]);
    expect(await task(`${run.id}.1`)).toMatchObject({ cwd: out, stdout: join(out, `${run.id}.1.every.1.txt`) });
    // `logs` reads the file that was chosen.
    expect((await slipway.run(["logs", `${run.id}.1`])).stdout).toBe(text);
  });

  it("{attempt} counts", async () => {
    const script = 'echo "attempt {attempt} $SLIPWAY_ATTEMPT"; test {attempt} = 3';
    const { run, lines } = await outputOf(["--retries", "5", "--", "sh", "-c", script]);
    expect(lines).toEqual(["0: attempt 3 3"]);
    expect((await task(`${run.id}.0`)).attempts).toHaveLength(3);
  });

  it("in a text command a value is data, whatever it holds", async () => {
    const evil = ["a; touch pwned", "$(touch pwned)", "`touch pwned`", "it's", '"', "\\", "*", "two  blanks"];
    await write("evil.json", JSON.stringify(evil));
    await write(
      "evil.yaml",
      `tasks: [{name: t, each: {json: evil.json}, run: "printf '<%s>' {item}; printf '<%s>' \\"{item}\\" '{item}'"}]\n`,
    );
    expect(await linesOf(["evil.yaml"])).toEqual(evil.map((item, i) => `${i}: <${item}><${item}><${item}>`));
    await expect(readFile(join(slipway.cwd, "pwned"))).rejects.toThrow("ENOENT");
  });

  it("shell and awk braces are left alone", async () => {
    const awk = `echo a b | awk '{print $2}'; x=1; echo "\${x}" {1..3} {} a{b,c}`;
    expect(await linesOf(["--", "bash", "-c", awk])).toEqual(["0: b", "0: 1 1 2 3 {} ab ac"]);
  });
});

describe("directory and environment", () => {
  it("a task runs where the command was typed; --cwd says otherwise, relative to that", async () => {
    const here = await realpath(slipway.cwd);
    await mkdir(join(slipway.cwd, "elsewhere"), { recursive: true });
    expect(await linesOf(["--", "pwd"])).toEqual([`0: ${here}`]);
    expect(await linesOf(["--cwd", "elsewhere", "--", "pwd"])).toEqual([`0: ${join(here, "elsewhere")}`]);
    expect(await linesOf(["--", "pwd"], { cwd: join(here, "elsewhere") })).toEqual([`0: ${join(here, "elsewhere")}`]);
    await write("elsewhere/file.yaml", "tasks: [{run: pwd}]\n");
    expect(await linesOf(["elsewhere/file.yaml"])).toEqual([`0: ${here}`]);
  });

  it("--export all is the default; none keeps what a shell needs; names take exactly those; --env wins", async () => {
    const env = { MINE: "1", OTHER: "two words", SSH_AGENT_PID: "1" };
    const script = 'echo "${MINE-unset}|${OTHER-unset}|${SSH_AGENT_PID-unset}|${HOME:+home}"';
    const of = (...args: string[]): Promise<string[]> => linesOf([...args, "--", "sh", "-c", script], { env });
    expect(await of()).toEqual(["0: 1|two words|unset|home"]);
    expect(await of("--export", "all")).toEqual(["0: 1|two words|unset|home"]);
    expect(await of("--export", "none")).toEqual(["0: unset|unset|unset|home"]);
    expect(await of("--export", "OTHER,SSH_AGENT_PID")).toEqual(["0: unset|two words|1|"]);
    expect(await of("--export", "none", "--env", "MINE=x=y", "--env", "OTHER=")).toEqual(["0: x=y||unset|home"]);
    expect(await of("--env", "MINE=over")).toEqual(["0: over|two words|unset|home"]);
  });

  it("arguments arrive exactly: empty, blanks, newlines, quotes, dashes, UTF-8, and options of the command itself", async () => {
    const words = ["", "  ", "a\nb", "\"'`$\\", "--cpus", "9", "--json", "-q", "--", "grüße 🚢", "*", "~"];
    const run = await slipway.json<RunView>(["run", "--", "printf", "%s\\0", ...words]);
    expect((await slipway.run(["logs", `${run.id}.0`])).stdout).toBe(words.map((word) => `${word}\0`).join(""));
    // Without `--` too, once the command has begun.
    const { stdout } = await slipway.run(["run", "--quiet", "printf", "%s|", "--cpus", "9"]);
    expect(stdout).toBe("--cpus|9|");
  });

  it("--name, --after and what show says of a command", async () => {
    const first = await slipway.json<{ run: number }>(["submit", "--name", "first one", "--", "true"]);
    const next = await slipway.json<RunView>(["run", "--after", String(first.run), "--", "echo", "a b", "$x"]);
    expect(next.state).toBe("DONE");
    expect((await slipway.json<RunView>(["show", String(first.run)])).name).toBe("first one");
    expect((await slipway.run(["show", `${next.id}.0`])).stdout).toContain("echo 'a b' '$x'");
  });
});
