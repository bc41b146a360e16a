import { Command } from "commander";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineSubmission } from "../../../src/cli/submission-options.ts";
import { isRunFile, isSeparated, readSubmission, type Submission } from "../../../src/cli/submission.ts";
import { globalsOf, withGlobals } from "../../../src/cli/verb.ts";
import type { Globals } from "../../../src/cli/context.ts";

let cwd = "";
beforeAll(() => {
  cwd = mkdtempSync(path.join(tmpdir(), "slipway-submission-"));
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

interface Parsed {
  readonly args: readonly string[];
  readonly options: Record<string, unknown>;
  readonly globals: Globals;
  readonly separated: boolean;
}

/** A command line as commander and we read it, without doing anything. */
const parse = async (...argv: string[]): Promise<Parsed> => {
  const program = withGlobals(new Command("slipway")).enablePositionalOptions().exitOverride();
  program.configureOutput({ writeErr: () => undefined });
  let found: Parsed | undefined;
  const run = withGlobals(defineSubmission(program.command("run")));
  run.action(() => {
    const options: Record<string, unknown> = run.opts();
    found = { args: run.args, options, globals: globalsOf(run), separated: isSeparated(argv, run.args) };
  });
  await program.parseAsync(argv, { from: "user" });
  return found!;
};

const submission = async (...argv: string[]): Promise<Submission> =>
  readSubmission({
    ...(await parse("run", ...argv)),
    home: cwd,
    cwd,
    env: { PATH: "/bin", HOME: "/root", SSH_TTY: "x" },
  });

const document = async (...argv: string[]): Promise<Record<string, unknown>> => {
  const { uuid, ...rest } = (await submission(...argv)).document;
  expect(uuid).toMatch(/^[0-9a-f-]{36}$/);
  return rest;
};

test("options end where the command begins, with -- and without", async () => {
  const parsed = await parse("run", "--cpus", "4", "--", "prog", "--cpus", "9", "--", "--json");
  expect(parsed).toMatchObject({ args: ["prog", "--cpus", "9", "--", "--json"], separated: true });
  expect(parsed.options["cpus"]).toBe("4");
  expect(parsed.globals.json).toBeUndefined();
  const plain = await parse("run", "--cpus", "4", "prog", "--cpus", "9", "--json");
  expect(plain).toMatchObject({ args: ["prog", "--cpus", "9", "--json"], separated: false });
  expect(plain.globals.json).toBeUndefined();
});

test("global options may stand before and after the verb, and after a file", async () => {
  expect((await parse("--home", "/a", "--no-color", "run", "--home", "/b", "x")).globals).toMatchObject({
    home: "/b",
    color: false,
  });
  expect((await parse("--json", "run", "--no-color", "x")).globals).toMatchObject({ json: true, color: false });
  const after = await parse("run", "--env", "A=1", "x.yaml", "--quiet", "--env", "B=2", "--name", "n");
  expect(after).toMatchObject({
    args: ["x.yaml"],
    globals: { quiet: true },
    options: { name: "n", env: ["A=1", "B=2"] },
  });
  await expect(parse("run", "x.yaml", "--nmae", "n")).rejects.toThrow("unknown option '--nmae'; did you mean --name?");
});

test("a file is what looks like one, unless -- stands before it", () => {
  writeFileSync(path.join(cwd, "there.json"), "{}");
  expect(isRunFile("gone.yaml", false, cwd)).toBe(true);
  expect(isRunFile("x.YML", false, cwd)).toBe(true);
  expect(isRunFile("x.yaml", true, cwd)).toBe(false);
  expect(isRunFile("there.json", false, cwd)).toBe(true);
  expect(isRunFile("gone.json", false, cwd)).toBe(false);
  expect(isRunFile("prog", false, cwd)).toBe(false);
});

test("a command becomes a document with one task", async () => {
  expect(await document("--", "/bin/echo", "hi")).toEqual({
    name: "echo",
    cwd,
    environment: { PATH: "/bin", HOME: "/root" },
    tasks: [{ run: ["/bin/echo", "hi"] }],
  });
});

test("every option finds its key", async () => {
  const found = await document(
    ..."--name n --array 1-9:2 --cpus 2 --gpus 0.5 --mem 500M --tmp 1G --resource licence=2 --time-limit 10m".split(
      " ",
    ),
    ..."--time-request 5m --priority -3 --retries 2 --retry-delay 5s --max-fails 4 --after 3,4 --after 5".split(" "),
    ..."--env A=1 --env B=x=y --cwd . --stdout o.{task} --stderr e --append --cluster c --queue q --via pilot --pin".split(
      " ",
    ),
    ..."--executor null --export PATH -- sim {item}".split(" "),
  );
  expect(found).toEqual({
    name: "n",
    "max-fails": 4,
    after: ["3", "4", "5"],
    cwd,
    environment: { PATH: "/bin" },
    tasks: [
      {
        run: ["sim", "{item}"],
        each: { array: "1-9:2" },
        cpus: "2",
        gpus: "0.5",
        mem: "500M",
        tmp: "1G",
        resources: { licence: "2" },
        "time-limit": "10m",
        "time-request": "5m",
        priority: -3,
        retries: 2,
        "retry-delay": "5s",
        env: { A: "1", B: "x=y" },
        cwd: ".",
        stdout: "o.{task}",
        stderr: "e",
        append: true,
        cluster: "c",
        queue: "q",
        via: "pilot",
        pin: true,
        executor: "null",
      },
    ],
  });
});

test("items of files and of standard input follow in the stream", async () => {
  writeFileSync(path.join(cwd, "list.txt"), "a\nb\n");
  const lines = await submission("--each-line", "list.txt", "--", "echo", "{item}");
  expect(lines.document["tasks"]).toEqual([{ run: ["echo", "{item}"], each: { stream: "lines" } }]);
  expect(lines.items).toMatchObject([{ group: 0, once: false }]);
  const json = await submission("--from-json", "there.json", "--", "echo", "{item}");
  expect(json.document["tasks"]).toEqual([{ run: ["echo", "{item}"], each: { stream: "json" } }]);
  expect((await submission("--stdin", "--", "echo", "{item}")).items).toMatchObject([{ group: 0, once: true }]);
});

test("what is typed beside a file wins over what it says", async () => {
  writeFileSync(
    path.join(cwd, "two.yaml"),
    "tasks:\n  - {name: a, run: x, cpus: 1}\n  - {name: b, run: y, after: a}\n",
  );
  writeFileSync(path.join(cwd, "clusters.yaml"), "clusters: {}\n");
  const found = await submission("--cpus", "2", path.join(cwd, "two.yaml"), "--name", "mine");
  expect(found.document).toMatchObject({ name: "mine", tasks: [{ cpus: "2" }, { cpus: "2", after: "a" }] });
  expect(found.clusters).toBe(path.join(cwd, "clusters.yaml"));
  expect(found.namesClusters).toBe(false);
});

test.for([
  [[], "nothing to run"],
  [["gone.yaml"], "cannot read gone.yaml: there is no such file"],
  [["x.yaml", "more"], "x.yaml is a run file and takes no arguments ('more')"],
  [["--cpus", "many", "--", "x"], '--cpus: must be a number, got "many"'],
  [["--each-line", "gone", "--", "x", "{item}"], "gone: there is no such file"],
  [["--array", "1-2", "--stdin", "--", "x"], "--array and --stdin cannot be used together"],
  [["--cwd", "gone", "--", "x"], "--cwd: there is no directory gone"],
  [["--clusters", "gone", "--", "x"], "gone: there is no such file"],
  [["--", "x", "{itme}"], "unknown placeholder {itme}; did you mean {item}?"],
] as const)("%s is refused before anything is sent", async ([argv, message]) => {
  await expect(submission(...argv)).rejects.toThrow(message);
  await expect(submission(...argv)).rejects.toMatchObject({ row: { exit: 2 } });
});
