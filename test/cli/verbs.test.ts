import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { EventView, RunView, ServerView, StatusView, TaskView, WhyView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { onSmallDisk } from "./small-disk.ts";
import { processesUnder } from "./processes-under.ts";
import { createHome, type Outcome, ROOT, type SlipwayHome } from "./slipway-process.ts";

/** Every verb as a user types it: what it prints, what it leaves, how it ends. */

let slipway: SlipwayHome;
const run = (...args: string[]): Promise<Outcome> => slipway.run(args);
const json = <T>(args: string[], statuses: number[] = [0]): Promise<T> => slipway.json<T>(args, { statuses });
const file = async (name: string, text: string): Promise<string> => {
  await writeFile(join(slipway.cwd, name), text);
  return name;
};
/** One slot for everything, so that a second task must wait for the first. */
const oneSlot = async (): Promise<void> => {
  await mkdir(slipway.home, { recursive: true });
  await writeFile(join(slipway.home, "clusters.yaml"), "clusters: { local: { resources: { cpu: 1 } } }\n");
};

describe("without a server running before", () => {
  beforeEach(async () => {
    slipway = await createHome();
  });
  afterEach(() => slipway.cleanup());

  it("up prints the address; a second up names pid, host and address; down stops it; a second down says there is none", async () => {
    const first = await run("up");
    expect(first).toMatchObject({ status: 0, stderr: "" });
    const { server } = await json<StatusView>(["status"]);
    expect(server).toMatchObject({ host: hostname(), state: "running", home: slipway.home });
    expect(first.stdout).toContain(server.url);
    expect(first.stdout).toContain(String(server.pid));

    const second = await run("up");
    expect(second.status).toBe(1);
    for (const part of [String(server.pid), hostname(), server.url, slipway.home])
      expect(second.stderr).toContain(part);

    expect(await run("down")).toMatchObject({ status: 0, stdout: "the server has stopped\n" });
    expect(await processesUnder(slipway.root)).toEqual([]);
    const third = await run("down");
    expect(third.status).toBe(3);
    expect(third.stderr).toContain(`no server runs for ${slipway.home}`);
    for (const verb of [["status"], ["submit", "--", "true"], ["wait", "1"], ["events", "--follow"]])
      expect((await run(...verb)).status, verb.join(" ")).toBe(3);
  });

  it("up takes a host and a port, and up --foreground ends with an interrupt", async () => {
    const server = slipway.start(["up", "--foreground", "--host", "127.0.0.1"]);
    await server.saw(/https:\/\/127\.0\.0\.1:\d+/);
    const { url } = await json<ServerView>(["status"]).then((status) => (status as unknown as StatusView).server);
    expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    server.child.kill("SIGINT");
    expect((await server.ended).status).toBe(0);
    const port = new URL(url).port;
    const again = await run("up", "--host", "127.0.0.1", "--port", port, "--quiet");
    expect(again).toMatchObject({ status: 0, stdout: `${url}\n` });
    for (const bad of ["70000", "-1", "x"]) expect((await run("up", "--port", bad)).status).toBe(2);
  });

  it("down lets running tasks end; waiting ones stay and go on at the next up", async () => {
    await oneSlot();
    await run("up");
    const gate = createGate(slipway.cwd);
    await run("submit", "--", ...gate.command);
    await gate.arrived(1);
    await run("submit", "--array", "1-3", "--", "sh", "-c", "echo later {item}");
    const down = slipway.start(["down"]);
    await down.saw(/waiting for 1 running task/, "stderr");
    // It accepts nothing new while it stops.
    const refused = await run("submit", "--", "true");
    expect(refused.status).toBe(3);
    expect(refused.stderr).toContain("stopping");
    gate.open();
    expect((await down.ended).status).toBe(0);
    expect(await processesUnder(slipway.root)).toEqual([]);

    await run("up");
    expect((await json<RunView>(["show", "1"])).counts).toEqual({ DONE: 1 });
    expect((await run("wait", "1", "2")).status).toBe(0);
    expect((await json<TaskView>(["show", "1.0"])).attempts).toHaveLength(1);
    expect((await run("logs", "2")).stdout).toBe("2.1: later 1\n2.2: later 2\n2.3: later 3\n");
  });

  it("down --now: what ran is run again later, at no cost to its retries", async () => {
    await run("up");
    const gate = createGate(slipway.cwd);
    await run("submit", "--retries", "0", "--", ...gate.command);
    expect(await gate.arrived(1)).toEqual(["1.0:1"]);
    expect((await run("down", "--now")).status).toBe(0);
    expect(await processesUnder(slipway.root)).toEqual([]);

    await run("up");
    expect(await gate.arrived(2)).toEqual(["1.0:1", "1.0:2"]);
    gate.open();
    expect((await run("wait", "1")).status).toBe(0);
    expect(await json<RunView>(["show", "1"])).toMatchObject({ state: "DONE", retries: 0 });
    const { attempts } = await json<TaskView>(["show", "1.0"]);
    expect(attempts.map(({ n, lost, exitCode }) => ({ n, lost, exitCode }))).toEqual([
      { n: 1, lost: true, exitCode: null },
      { n: 2, lost: false, exitCode: 0 },
    ]);
    expect((await run("show", "1.0")).stdout).toMatch(/1  lost /);
  });

  it("run starts a server of its own and stops it", async () => {
    const { status, stdout, stderr } = await run("run", "--", "echo", "hi");
    expect({ status, stdout }).toEqual({ status: 0, stdout: "hi\n" });
    expect(stderr).toContain("run 1 echo: done, 1 done");
    expect(await processesUnder(slipway.root)).toEqual([]);
    // The history stays, and run numbers continue.
    expect(await json<RunView>(["run", "--", "true"])).toMatchObject({ id: 2, state: "DONE" });
  });

  it("run leaves its server when another run is live, and says so", async () => {
    const gate = createGate(slipway.cwd);
    const own = createGate(slipway.cwd, "own");
    const first = slipway.start(["run", "--", ...own.command]);
    await own.arrived(1);
    await run("submit", "--", ...gate.command);
    await gate.arrived(1);
    own.open();
    const { status, stderr } = await first.ended;
    expect(status).toBe(0);
    expect(stderr).toContain("the server stays up");
    await until("run 2 to run", async () =>
      (await json<RunView>(["show", "2"])).state === "RUNNING" ? true : undefined,
    );
    gate.open();
    expect((await run("wait", "2")).status).toBe(0);
  });

  it("several runs at once in a home without a server all succeed, whoever starts and stops it", async () => {
    for (let round = 0; round < 3; round++) {
      const runs = [1, 2, 3, 4].map((n) => run("run", "--quiet", "--", "echo", `round ${round} run ${n}`));
      for (const [at, outcome] of (await Promise.all(runs)).entries())
        expect(outcome).toEqual({ status: 0, signal: null, stdout: `round ${round} run ${at + 1}\n`, stderr: "" });
    }
    await run("up");
    expect((await json<RunView[]>(["list"])).map(({ state }) => state)).toEqual(Array(12).fill("DONE"));
  });

  it("run --clusters is for the server it starts", async () => {
    await writeFile(join(slipway.cwd, "mine.yaml"), "clusters: { local: { resources: { cpu: 1, licence: 7 } } }\n");
    const args = ["run", "--quiet", "--clusters", "mine.yaml", "--resource", "licence=7", "--", "echo", "ok"];
    expect(await run(...args)).toMatchObject({ status: 0, stdout: "ok\n" });
    await run("up");
    const late = await run(...args);
    expect(late.status).toBe(2);
    expect(late.stderr).toContain("--clusters");
  });

  it("what failed in a run with its own server can be looked at afterwards, as its summary says", async () => {
    const failed = await run("run", "--array", "1-2", "--", "sh", "-c", "echo broken >&2; exit 3");
    expect(failed.status).toBe(1);
    expect(failed.stdout).toContain("slipway up");
    expect(failed.stdout).toContain("slipway why 1.1");
    await run("up");
    expect((await run("logs", "1.1", "--stderr")).stdout).toBe("broken\n");
    expect((await run("why", "1.1")).stdout).toContain("broken");
  });
});

describe("with a server", () => {
  beforeAll(async () => {
    slipway = await createHome();
    await oneSlot();
    expect((await run("up")).status).toBe(0);
  });
  afterAll(() => slipway.cleanup());

  const submit = async (...args: string[]): Promise<number> => (await json<{ run: number }>(["submit", ...args])).run;

  it("run uses the server that is there and leaves it", async () => {
    const before = (await json<StatusView>(["status"])).server;
    expect(await run("run", "--quiet", "--", "echo", "hi")).toMatchObject({ status: 0, stdout: "hi\n", stderr: "" });
    expect((await json<StatusView>(["status"])).server).toMatchObject({ pid: before.pid, started: before.started });
  });

  it("submit prints the id; --quiet nothing else", async () => {
    const talking = await run("submit", "--array", "1-12", "--", "true");
    expect(talking.stdout).toMatch(/^submitted run \d+: 12 tasks\n$/);
    const quiet = await run("submit", "--quiet", "--", "true");
    expect(quiet.stdout).toMatch(/^\d+\n$/);
    expect((await run("wait", quiet.stdout.trim(), "--quiet")).stdout).toBe("");
  });

  it("status shows server, fleets, pilots and runs on one screen", async () => {
    await run("run", "--quiet", "--name", "seen by status", "--", "true");
    const { server, fleets, pilots, runs } = await json<StatusView>(["status"]);
    const { stdout } = await run("status");
    for (const text of [server.url, String(server.pid), "running", "seen by status", fleets[0]!.queue, pilots[0]!.id])
      expect(stdout).toContain(text);
    expect(runs.at(0)!.id).toBeGreaterThan(0);
    // A screen, not a book.
    expect(stdout.split("\n").length).toBeLessThan(40);
  });

  it("list has the newest runs first, --limit fewer", async () => {
    await run("run", "--quiet", "--name", "one", "--", "true");
    await run("run", "--quiet", "--name", "two", "--", "false");
    const runs = await json<RunView[]>(["list"]);
    expect(runs.slice(0, 2).map(({ name, state }) => [name, state])).toEqual([
      ["two", "FAILED"],
      ["one", "DONE"],
    ]);
    expect(runs.map(({ id }) => id)).toEqual(runs.map((_, at) => runs[0]!.id - at));
    expect(await json<RunView[]>(["list", "--limit", "1"])).toHaveLength(1);
    expect((await run("list")).stdout).toMatch(/two +failed/);
    expect((await run("list", "--limit", "0")).status).toBe(2);
  });

  it("show: a run with its groups and failures, a task with its attempts, and how tasks are numbered", async () => {
    await file(
      "shown.yaml",
      "tasks:\n - {name: ok, run: 'true'}\n - {name: bad, each: {values: [x, y]}, run: 'echo {item} is odd >&2; exit 7'}\n",
    );
    const { id } = await json<RunView>(["run", "shown.yaml"], [1]);
    const screen = (await run("show", String(id))).stdout;
    expect(screen).toMatch(new RegExp(`run ${id} +shown +failed`));
    expect(screen).toMatch(/ok +1 +1/);
    expect(screen).toContain("y is odd");
    expect(screen).toContain(`${id}.0`);
    const task = (await run("show", `${id}.2`)).stdout;
    for (const text of ["bad[y]", "failed", "exit 7", "y is odd", "cpus 1"]) expect(task).toContain(text);
    const numbered = await submit("--array", "5-25:10", "--", "true");
    await run("wait", String(numbered));
    expect((await run("show", String(numbered))).stdout).toMatch(`${numbered}.5`);
    expect((await run("show", `${numbered}.15`)).status).toBe(0);
    const missing = await run("show", `${numbered}.6`);
    expect(missing.status).toBe(2);
    expect(missing.stderr).toContain(`run ${numbered} has no task 6`);
  });

  it("show, why, logs, cancel, retry and wait refuse what is no run", async () => {
    for (const verb of ["show", "why", "logs", "cancel", "retry", "wait"]) {
      const unknown = await run(verb, "987654");
      expect(unknown.status, verb).toBe(2);
      expect(unknown.stderr, verb).toContain("there is no run 987654");
      expect((await run(verb, "three")).status, verb).toBe(2);
      expect((await run(verb)).status, verb).toBe(2);
    }
    expect((await run("events", "--run", "987654")).status).toBe(2);
  });

  it("why: while it runs, is busy, waits for another, has failed, was cancelled, was not needed, is done", async () => {
    const gate = createGate(slipway.cwd, "why");
    await file(
      "why.yaml",
      `tasks:
  - { name: first, run: '${gate.script.replaceAll("'", "''")}' }
  - { name: second, after: first, run: 'echo no room >&2; exit 9' }
  - { name: third, after: second, run: 'true' }
  - { name: alarm, after: { first: failed }, run: 'true' }
`,
    );
    const id = await submit("why.yaml");
    await gate.arrived(1);
    const waiting = await submit("--", "true");
    const why = (target: string): Promise<WhyView> => json<WhyView>(["why", target]);
    await until("the first to run", async () => ((await why(`${id}.0`)).cause === "running" ? true : undefined));
    expect(await why(String(id))).toMatchObject({ cause: "running" });
    const blocked = await why(`${id}.1`);
    expect(blocked.cause).toBe("dependencies");
    expect(blocked.detail).toContain("first");
    const busy = await why(String(waiting));
    expect(["busy", "queued-at-agent"]).toContain(busy.cause);
    expect(busy.detail).toMatch(/cpus 1|busy/);
    const canceled = await submit("--", "true");
    await run("cancel", String(canceled), "--reason", "changed my mind");
    expect(await why(`${canceled}.0`)).toMatchObject({ cause: "canceled", detail: "changed my mind" });
    gate.open();
    expect((await run("wait", String(id), String(waiting))).status).toBe(1);
    expect(await why(`${id}.0`)).toMatchObject({ cause: "done" });
    const failed = await why(`${id}.1`);
    expect(failed.cause).toBe("failed");
    expect(failed.detail).toMatch(/exit code 9 after 1 attempt; it said: no room/);
    expect(failed.remedy).toContain(`slipway retry ${id}`);
    const dropped = await why(`${id}.2`);
    expect(dropped.cause).toBe("canceled");
    expect(dropped.detail).toContain("second");
    expect(await why(`${id}.3`)).toMatchObject({ cause: "not-needed" });
    const whole = await why(String(id));
    expect(whole.cause).toBe("failed");
    expect(whole.detail).toContain(`${id}.1`);
    expect((await run("why", `${id}.1`)).stdout).toMatch(/^failed\n {2}exit code 9/);
  });

  it("cancel: one task leaves the others alone, a run all that is left of it, and again changes nothing", async () => {
    const gate = createGate(slipway.cwd, "cancel");
    const id = await submit("--array", "1-4", "--", ...gate.command);
    await gate.arrived(1);
    expect((await run("cancel", `${id}.3`)).stdout).toContain("1 task cancelled");
    expect(await json<TaskView>(["show", `${id}.3`])).toMatchObject({ state: "CANCELED", attempts: [] });
    expect((await json<RunView>(["show", String(id)])).finished).toBeNull();
    const all = await run("cancel", String(id));
    expect(all.status).toBe(0);
    // A task that waits in an agent's queue is taken back there, like one that runs.
    const [, now, later] = /: (\d+) tasks? cancelled, (\d+) more stopping/.exec(all.stdout) ?? [];
    expect(Number(now) + Number(later), all.stdout).toBe(3);
    expect((await run("wait", String(id))).status).toBe(1);
    expect((await json<RunView>(["show", String(id)])).counts).toEqual({ CANCELED: 4 });
    expect((await run("cancel", String(id))).stdout).toContain("0 tasks cancelled");
  });

  it("retry runs what failed or was cancelled again, with --all everything; earlier attempts stay visible", async () => {
    await file("flag", "");
    const script = 'if [ -e flag ] && [ "$SLIPWAY_TASK" != 1 ]; then exit 4; fi';
    const id = await submit("--array", "1-3", "--", "sh", "-c", script.replaceAll("{", "{{"));
    expect((await run("wait", String(id))).status).toBe(1);
    spawnSync("rm", [join(slipway.cwd, "flag")]);
    expect((await run("retry", String(id))).stdout).toContain("2 tasks will run again");
    expect((await run("wait", String(id))).status).toBe(0);
    const attempts = async (task: number): Promise<(number | null)[]> =>
      (await json<TaskView>(["show", `${id}.${task}`])).attempts.map(({ exitCode }) => exitCode);
    expect([await attempts(1), await attempts(2), await attempts(3)]).toEqual([[0], [4, 0], [4, 0]]);
    expect((await run("retry", String(id), "--failed")).stdout).toContain("0 tasks");
    expect((await run("retry", String(id), "--all")).stdout).toContain("3 tasks");
    expect((await run("wait", String(id))).status).toBe(0);
    expect(await attempts(1)).toEqual([0, 0]);
    expect((await run("retry", String(id), "--all", "--failed")).status).toBe(2);
  });

  it("tasks: filtered, sorted, chosen columns, as CSV and as lines of JSON; the same once the run is archived", async () => {
    const script = "sleep 0.{item}; [ {item} != 2 ] || exit 7";
    const id = await submit("--array", "1-4", "--", "sh", "-c", script);
    await run("wait", String(id));
    const table = await run("tasks", String(id));
    expect(table).toMatchObject({ status: 0, stderr: "" });
    expect(table.stdout.split("\n")[0]).toMatch(/^TASK +NAME +STATE +ATTEMPTS +HOST +STARTED +TIME .*END +REASON$/);
    expect(table.stdout).toMatch(new RegExp(`^${id}\\.2 +sh\\[2\\] +failed .* exit 7$`, "m"));
    const ids = async (...args: string[]): Promise<string[]> =>
      (await run("tasks", String(id), "--columns", "index", ...args)).stdout
        .split("\n")
        .slice(1, -1)
        .map((text) => text.trim());
    expect(await ids("--state", "failed")).toEqual(["2"]);
    expect(await ids("--state", "DONE,FAILED", "--exit-code", "0", "--reverse")).toEqual(["4", "3", "1"]);
    expect(await ids("--sort", "duration", "--reverse", "--limit", "1")).toEqual(["4"]);
    expect(await ids("--host", hostname(), "--name", "sh", "--longer", "0.3s")).toEqual(["3", "4"]);
    expect(await run("tasks", String(id), "--lost")).toMatchObject({
      status: 0,
      stdout: "",
      stderr: "no such tasks\n",
    });
    const csv = (await run("tasks", String(id), "--csv", "--columns", "id,state,exit,command", "--state", "failed"))
      .stdout;
    expect(csv).toBe(`id,state,exit,command\n${id}.2,failed,7,sh -c 'sleep 0.2; [ 2 != 2 ] || exit 7'\n`);
    const lines = (await run("tasks", String(id), "--json")).stdout;
    const rows = lines
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { state: string; index: number });
    expect(rows.map(({ state, index }) => [index, state])).toEqual([
      [1, "DONE"],
      [2, "FAILED"],
      [3, "DONE"],
      [4, "DONE"],
    ]);
    for (const [args, says] of [
      [["--columns", "id,tim"], "did you mean time?"],
      [["--longer", "soon"], "--longer"],
    ] as const) {
      const refused = await run("tasks", String(id), ...args);
      expect([refused.status, refused.stderr.includes(says)], says).toEqual([2, true]);
    }
    expect((await run("tasks", "99999")).stderr).toContain("there is no run 99999");
    expect((await run("journal", "compact")).status).toBe(0);
    expect((await run("tasks", String(id), "--json")).stdout).toBe(lines);
  });

  it("run and wait --joblog: GNU parallel's columns, then ours; what cannot be written harms no run", async (ctx) => {
    const outcome = await run(
      "run",
      "--quiet",
      "--joblog",
      "log.tsv",
      "--array",
      "5-7",
      "--",
      "sh",
      "-c",
      "[ {item} != 6 ] || kill -9 $$",
    );
    expect(outcome.status).toBe(1);
    const text = await readFile(join(slipway.cwd, "log.tsv"), "utf8");
    const [head, ...lines] = text
      .trimEnd()
      .split("\n")
      .map((line) => line.split("\t"));
    expect(head!.slice(0, 9).join(" ")).toBe("Seq Host Starttime JobRuntime Send Receive Exitval Signal Command");
    const bySeq = lines.toSorted((a, b) => Number(a[0]) - Number(b[0]));
    expect(bySeq.map((line) => [line[0], line[1], line[6], line[7], line[10]])).toEqual([
      ["1", hostname(), "0", "0", "done"],
      ["2", hostname(), "0", "9", "failed"],
      ["3", hostname(), "0", "0", "done"],
    ]);
    const [id] = bySeq[0]![9]!.split(".");
    await run("wait", id!, "--joblog", "again.tsv");
    const again = await readFile(join(slipway.cwd, "again.tsv"), "utf8");
    expect(again.trimEnd().split("\n").toSorted()).toEqual(text.trimEnd().split("\n").toSorted());
    const before = (await json<RunView[]>(["list"])).length;
    const refused = await run("run", "--joblog", "no/such/log.tsv", "--", "true");
    expect([refused.status, refused.stderr.includes("--joblog: ENOENT")]).toEqual([2, true]);
    expect((await json<RunView[]>(["list"])).length).toBe(before);
    await onSmallDisk(ctx, join(slipway.cwd, "small"), "16k", async () => {
      const long = "x".repeat(3000);
      const full = await run("run", "--quiet", "--joblog", "small/log.tsv", "--array", "1-20", "--", "true", long);
      expect(full).toMatchObject({
        status: 0,
        stderr: expect.stringMatching(/^warning: the joblog .* cannot be written .*ENOSPC/) as string,
      });
    });
  });

  it("retry takes single tasks, states and names, and other amounts for this time, which show tells", async () => {
    await file("flag", "");
    const tasks = [
      "  - { name: dock, each: { array: 1-3 }, run: '[ ! -e flag ] || [ {item} = 2 ]', mem: 20M }",
      "  - { name: score, run: '[ ! -e flag ]', mem: 20M }",
      "  - { name: merge, after: dock, run: 'true' }",
    ];
    await file("again.yaml", ["tasks:", ...tasks].join("\n"));
    const id = Number((await run("submit", "--quiet", "again.yaml")).stdout);
    await run("wait", String(id));
    spawnSync("rm", [join(slipway.cwd, "flag")]);
    const states = async (): Promise<string[]> => {
      const all = await slipway.run(["wait", String(id)]).then(() => [0, 1, 2, 3, 4]);
      return Promise.all(all.map(async (task) => (await json<TaskView>(["show", `${id}.${task}`])).state));
    };
    expect(await states()).toEqual(["FAILED", "DONE", "FAILED", "FAILED", "CANCELED"]);
    // merge comes along, and is cancelled again: a task before it has still failed
    expect((await run("retry", `${id}.0`, "--set", "mem=30M", "--set", "time-limit=1m")).stdout).toContain(
      "1 task will",
    );
    expect(await states()).toEqual(["DONE", "DONE", "FAILED", "FAILED", "CANCELED"]);
    const set = await json<TaskView>(["show", `${id}.0`]);
    expect([set.resources["mem"], set.set]).toEqual([
      30 * 2 ** 20,
      { resources: { mem: 30 * 2 ** 20 }, timeLimit: 60 },
    ]);
    expect((await run("show", `${id}.0`)).stdout).toContain("set mem 30M, time-limit 1m");
    const blocked = await run("retry", `${id}.4`);
    expect(blocked.stdout + blocked.stderr).toMatch(/0 tasks will run again[^]*1 task cannot run/);
    expect(await json(["retry", String(id), "--state", "failed", "--name", "dock"])).toEqual({ run: id, reopened: 1 });
    expect(await states()).toEqual(["DONE", "DONE", "DONE", "FAILED", "DONE"]);
    expect(await json(["retry", String(id), "--state", "FAILED,canceled"])).toEqual({ run: id, reopened: 1 });
    expect(await states()).toEqual(["DONE", "DONE", "DONE", "DONE", "DONE"]);

    const refusals: [string[], RegExp][] = [
      [["--set", "mem=900T"], /mem 900T; the largest/],
      [["--set", "mem=much"], /--set mem.*not a valid size/],
      [["--set", "queue=long"], /stays where its task was/],
      [["--set", "mme=1"], /did you mean 'mem'/],
      [["--set", "mem"], /NAME=VALUE/],
      [["--state", "failled"], /did you mean failed/],
      [["--name", "dok"], /did you mean dock/],
      [["--state", "done", "--all"], /cannot be used together/],
    ];
    for (const [args, message] of refusals) {
      const refused = await run("retry", String(id), ...(args[0] === "--set" ? ["--all"] : []), ...args);
      expect([refused.status, refused.stderr], args.join(" ")).toEqual([2, expect.stringMatching(message)]);
    }
    expect((await run("retry", `${id}.77`)).stderr).toContain(`no task 77`);
    expect((await run("retry", `${id}.0`, "--name", "dock")).status).toBe(2);
    expect(await states()).toEqual(["DONE", "DONE", "DONE", "DONE", "DONE"]);
  });

  it("resume submits a new run in which what the earlier one has done is skipped, also from the archive", async () => {
    await file("flag", "");
    const dock = (items: string, command = "") =>
      `  - { name: dock, each: { values: [${items}] }, run: 'echo {item} >> did.txt; [ ! -e flag ] || [ {item} != b ]${command}' }`;
    const rest = [
      "  - { name: prepare, run: 'echo prepare >> did.txt' }",
      "  - { name: merge, after: [dock, prepare], run: 'echo merge >> did.txt' }",
    ];
    const did = async (): Promise<string[]> =>
      (await readFile(join(slipway.cwd, "did.txt"), "utf8")).trim().split("\n").toSorted();
    await file("resume.yaml", ["tasks:", dock("a, b, c"), ...rest].join("\n"));
    const id = Number((await run("submit", "--quiet", "resume.yaml")).stdout);
    expect((await run("wait", String(id))).status).toBe(1);
    expect(await did()).toEqual(["a", "b", "c", "prepare"]);
    spawnSync("rm", [join(slipway.cwd, "flag"), join(slipway.cwd, "did.txt")]);
    await run("journal", "compact");

    // another order, one more item, more memory: what was done stays done
    await file("resume.yaml", ["tasks:", dock("c, d, b, a"), ...rest].join("\n"));
    const answer = await json<{ run: number }>(["resume", String(id), "resume.yaml", "--mem", "50M"]);
    expect(answer).toMatchObject({ total: 6, skipped: 3 });
    expect((await run("wait", String(answer.run))).stdout).toContain("6 done (3 of them skipped)");
    expect(await did()).toEqual(["b", "d", "merge"]);
    expect(await json<RunView>(["show", String(answer.run)])).toMatchObject({ state: "DONE", skipped: 3, resumes: id });
    expect(await json<TaskView>(["show", `${answer.run}.0`])).toMatchObject({
      state: "DONE",
      skipped: true,
      attempts: [],
    });
    expect((await run("why", `${answer.run}.0`)).stdout).toContain(`run ${id} has done it`);
    expect((await run("show", String(answer.run))).stdout).toContain(`run ${id}`);

    // nothing is left: the run ends at once; another command is other work, and what waits for it runs again
    const whole = await json<{ run: number; skipped: number }>(["resume", String(answer.run), "resume.yaml"]);
    expect([whole.skipped, (await run("wait", String(whole.run))).status]).toEqual([6, 0]);
    await file("resume.yaml", ["tasks:", dock("c, d, b, a", " && true"), ...rest].join("\n"));
    const text = (await run("resume", String(whole.run), "resume.yaml")).stdout;
    expect(text).toMatch(/submitted run \d+: 6 tasks, 1 of them done by run/);
    await run("wait", /run (\d+)/.exec(text)![1]!);
    // a skipped task can be retried like any other
    expect(await json(["retry", `${whole.run}.0`])).toEqual({ run: whole.run, reopened: 1 });
    await run("wait", String(whole.run));
    expect(await json<RunView>(["show", String(whole.run)])).toMatchObject({ state: "DONE", skipped: 5 });

    expect((await run("resume", "987654", "resume.yaml")).stderr).toContain("there is no run 987654");
    for (const args of [[], ["1"], ["1", "--", "true"], ["resume.yaml", "1"], ["1.0", "resume.yaml"]])
      expect((await run("resume", ...args)).status, args.join(" ")).toBe(2);
  });

  it("retry of a run that has not ended is refused", async () => {
    const gate = createGate(slipway.cwd, "active");
    const id = await submit("--", ...gate.command);
    await gate.arrived(1);
    const refused = await run("retry", String(id));
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain(`run ${id} has not ended`);
    gate.open();
    await run("wait", String(id));
  });

  it("events tells what happened, of one run or all; --follow goes on until interrupted", async () => {
    const id = await submit("--", "sh", "-c", "exit 5");
    await run("wait", String(id));
    const lines = (await run("events", "--run", String(id), "--json")).stdout.trimEnd().split("\n");
    const events = lines.map((line) => JSON.parse(line) as EventView);
    expect(events.map(({ event }) => event)).toEqual(["run.submitted", "task.ended", "run.finished"]);
    expect(events[1]).toMatchObject({ task: `${id}.0`, detail: { state: "FAILED", reason: "exit code 5" } });
    expect((await run("events")).stdout).toMatch(/server\.started .*\n.*run\.submitted .*\n.*pilot\.requested/);
    const since = (await run("events", "--since", String(events[1]!.seq), "--run", String(id))).stdout;
    expect(since).toMatch(/^.*run\.finished.*\n$/);

    const follow = slipway.start(["events", "--follow", "--json", "--since", String(events[2]!.seq)]);
    const other = await submit("--", "true");
    await follow.saw(new RegExp(`"event":"run.finished","run":${other}\\b`));
    follow.child.kill("SIGINT");
    expect((await follow.ended).status).toBe(130);
  });

  it("wait: 0 when all is done, 1 when something failed, and says how it ended", async () => {
    const [good, bad] = [await submit("--", "true"), await submit("--", "false")];
    const one = await run("wait", String(good));
    expect(one).toMatchObject({ status: 0 });
    expect(one.stdout).toMatch(new RegExp(`^run ${good} true: done, 1 done in `));
    const both = await run("wait", String(good), String(bad));
    expect(both.status).toBe(1);
    expect(both.stdout).toContain(`run ${bad} false: failed`);
  });

  it("pilots and clusters are listed", async () => {
    await run("run", "--quiet", "--", "true");
    const [pilot] = await json<StatusView["pilots"]>(["pilots", "list"]);
    expect(pilot).toMatchObject({ cluster: "local", queue: "default", state: "PMGR_ACTIVE" });
    expect((await run("pilots", "list")).stdout).toContain("running");
    expect(await json(["clusters", "list"])).toMatchObject([{ name: "local", type: "local", default: true }]);
    expect((await run("clusters", "show", "local")).stdout).toContain("cpus 1");
    const unknown = await run("clusters", "show", "locl");
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toContain("no cluster 'locl'");
  });

  it("journal: what it holds, whether it is whole, every event; a home without one is named", async () => {
    await run("run", "--quiet", "--", "true");
    expect((await run("journal", "info")).stdout).toMatch(/^format +6\nsize .*\nrecords +\d+ to replay/);
    expect(await json<{ segments: unknown[] }>(["journal", "info"])).toMatchObject({ problems: [], warnings: [] });
    expect((await run("journal", "verify")).stdout).toMatch(/^the journal is whole: \d+ records\n$/);
    const events = (await run("journal", "export")).stdout.trimEnd().split("\n");
    expect(events.map((line) => (JSON.parse(line) as { type: string }).type)).toContain("run.committed");
    const nowhere = await run("journal", "verify", "--home", join(slipway.root, "nowhere"));
    expect(nowhere).toMatchObject({ status: 3, stdout: "" });
    expect(nowhere.stderr).toContain("no journal");
    expect((await run("journal", "frobnicate")).status).toBe(2);
    expect((await run("journal", "info", "--deep")).stderr).toContain("unknown option '--deep'");
  });

  it("a reader that leaves early is no error", async () => {
    await run("run", "--quiet", "--array", "1-200", "--", "sh", "-c", "echo {item}");
    for (const verb of ["list", "events", "journal export"]) {
      const script = `"$0" "$1" ${verb} | head -n 1`;
      const bash = spawnSync("bash", ["-o", "pipefail", "-c", script, process.execPath, join(ROOT, "bin/slipway")], {
        env: { ...process.env, SLIPWAY_HOME: slipway.home },
        encoding: "utf8",
      });
      expect({ status: bash.status, stderr: bash.stderr }, verb).toEqual({ status: 0, stderr: "" });
    }
  });
});

describe("progress", () => {
  beforeAll(async () => {
    slipway = await createHome();
    expect((await run("up")).status).toBe(0);
  });
  afterAll(() => slipway.cleanup());

  const script = "/usr/bin/script";
  /** Runs a command in a terminal of its own and returns everything drawn; `type` writes to it. */
  const inTerminal = (args: string[], env: Record<string, string> = {}) => {
    const quoted = [process.execPath, join(ROOT, "bin/slipway"), ...args].map((word) => `'${word}'`).join(" ");
    const child = spawn(script, ["-qfec", `stty cols 100 rows 30; ${quoted}`, "/dev/null"], {
      cwd: slipway.cwd,
      env: { ...process.env, SLIPWAY_HOME: slipway.home, TERM: "xterm", LC_ALL: "C.UTF-8", ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    let drawn = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      drawn += text;
    });
    const ended = once(child, "close").then(([status]) => ({ status: status as number, drawn }));
    return { ended, type: (text: string) => child.stdin.write(text), drawn: () => plain(drawn) };
  };
  // eslint-disable-next-line no-control-regex -- colours and the clearing of a line
  const plain = (drawn: string): string => drawn.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "");

  it("on a terminal, one line is redrawn as a bar and replaced by the summary", async (ctx) => {
    if (!existsSync(script)) ctx.skip("script (util-linux) is not installed");
    const gate = createGate(slipway.cwd, "bar");
    const file = "bar.yaml";
    const quoted = gate.script.replaceAll("'", "''");
    await writeFile(
      join(slipway.cwd, file),
      `tasks:\n  - {name: a, each: {array: 1-9}, run: 'true'}\n  - {name: b, after: a, run: '${quoted}'}\n`,
    );
    const terminal = inTerminal(["run", file]);
    await until("the bar", () => (/▕█+.*▏ {2}9\/10/.test(terminal.drawn()) ? true : undefined));
    gate.open();
    const { status, drawn } = await terminal.ended;
    expect(status).toBe(0);
    expect(drawn).toContain("\r\u001b[J");
    // Every line that was drawn fits the terminal.
    const lines = plain(drawn).split(/[\r\n]+/);
    for (const line of lines) expect([...line].length).toBeLessThanOrEqual(100);
    expect(lines.filter((line) => line.includes("▕")).length).toBeGreaterThan(1);
    expect(lines.filter((line) => /run \d+ bar: done, 10 done in/.test(line))).toHaveLength(1);
    // After the summary no bar is drawn again.
    expect(lines.findLastIndex((line) => line.includes("▕"))).toBeLessThan(
      lines.findIndex((line) => line.includes(": done, 10 done")),
    );
  });

  it("Ctrl-C typed on a terminal cancels", async (ctx) => {
    if (!existsSync(script)) ctx.skip("script (util-linux) is not installed");
    const terminal = inTerminal(["run", "--", "sleep", "600"]);
    await until("the bar", () => (terminal.drawn().includes("0/1") ? true : undefined));
    terminal.type("\u0003");
    const { status, drawn } = await terminal.ended;
    expect(status).toBe(130);
    expect(drawn).toMatch(/cancelling run \d+/);
  });

  it("d leaves the bar and the run continues; attach comes back to it", async (ctx) => {
    if (!existsSync(script)) ctx.skip("script (util-linux) is not installed");
    const gate = createGate(slipway.cwd, "left");
    const left = inTerminal(["run", "--", ...gate.command]);
    await gate.arrived(1);
    await until("the bar", () => left.drawn().includes("1 running"));
    expect(left.drawn()).toContain("Ctrl-C cancels it");
    left.type("d");
    const { status, drawn } = await left.ended;
    expect(status).toBe(0);
    const id = /run (\d+) continues: `slipway attach \d+`/.exec(plain(drawn))?.[1];
    const back = inTerminal(["attach", id!]);
    await until("the bar again", () => back.drawn().includes("1 running"));
    gate.open();
    const ended = await back.ended;
    expect(ended.status).toBe(0);
    expect(plain(ended.drawn)).toMatch(/run \d+ \S+: done, 1 done/);
  });

  it("no colours where they are not wanted; ASCII where UTF-8 is not", async (ctx) => {
    if (!existsSync(script)) ctx.skip("script (util-linux) is not installed");
    const colored = await inTerminal(["list"]).ended;
    expect(colored.drawn).toContain("\u001b[");
    for (const colorless of [inTerminal(["list", "--no-color"]), inTerminal(["list"], { NO_COLOR: "1" })])
      expect((await colorless.ended).drawn).not.toContain("\u001b[");
    const ascii = await inTerminal(["run", "--array", "1-3", "--", "sleep", "0.3"], { LC_ALL: "C" }).ended;
    expect(plain(ascii.drawn)).toMatch(/\[#*-*\] {2}\d\/3/);
    // eslint-disable-next-line no-control-regex -- that is the point
    expect(ascii.drawn).toMatch(/^[\u0000-\u007f]*$/);
  });

  it("completion knows runs, clusters, queues and pilots in bash, zsh and fish, and is silent without a server", async () => {
    const submitted = (await slipway.json<{ run: number }>(["submit", "--", "true"])).run;
    await run("wait", String(submitted));
    const bin = join(ROOT, "bin");
    const scriptOf = async (shell: string): Promise<string> => (await run("completion", shell)).stdout;
    const [bash, fish, zsh] = await Promise.all(["bash", "fish", "zsh"].map(scriptOf));
    const ask: Record<string, (line: string) => [string, string[]]> = {
      bash: (line) => {
        const words = line.split(" ");
        const code = `${bash}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _slipway; printf '%s\\n' "\${COMPREPLY[@]}"`;
        return ["bash", ["--norc", "-c", code]];
      },
      fish: (line) => ["fish", ["--no-config", "-c", `${fish}\ncomplete -C '${line}'`]],
      // a terminal inside zsh, into which the line and a tab are typed
      zsh: (line) => [
        "zsh",
        [
          "-fc",
          `zmodload zsh/zpty; zpty z 'PS1=; TERM=dumb zsh -fi'; zpty -w z 'autoload -Uz compinit; compinit -u -D; LISTMAX=10000; zstyle ":completion:*" list-prompt ""; eval "$SLIPWAY_SCRIPT"; bindkey "^I" list-choices; print REA""DY'; until zpty -r z text; [[ "$text" == *READY* ]]; do :; done; zpty -w -n z ${JSON.stringify(line)}$'\\t'; sleep 4; while zpty -r -t z text; do print -rn -- "$text"; done`,
        ],
      ],
    };
    const complete = (shell: string, line: string, home = slipway.home): string => {
      const [program, words] = ask[shell]!(line);
      const env = {
        ...process.env,
        SLIPWAY_HOME: home,
        PATH: `${bin}:${process.env["PATH"]}`,
        SLIPWAY_SCRIPT: zsh!,
        HOME: slipway.root,
      };
      const { stdout, stderr } = spawnSync(program, words, {
        encoding: "utf8",
        cwd: slipway.cwd,
        env,
        timeout: 60_000,
      });
      expect(stderr, `${shell}: ${line}`).toBe("");
      return stdout;
    };
    for (const shell of ["bash", "fish", "zsh"].filter((each) => existsSync(`/usr/bin/${each}`))) {
      expect(complete(shell, "slipway show "), shell).toMatch(new RegExp(`\\b${submitted}\\b`));
      expect(complete(shell, "slipway run --cluster lo"), shell).toContain("local");
      expect(complete(shell, "slipway run --queue d"), shell).toContain("default");
    }
    for (const shell of ["bash", "fish"].filter((each) => existsSync(`/usr/bin/${each}`))) {
      expect(complete(shell, "slipway wait ", join(slipway.root, "nowhere")), shell).not.toMatch(/\b\d+\b/);
      expect(complete(shell, `slipway --home ${slipway.home} attach `, "/none")).toContain(String(submitted));
      expect(complete(shell, "slipway why pilot "), shell).toMatch(/^\d+\b/);
      expect(complete(shell, "slipway why "), shell).toContain("local/default");
    }
  });

  it("elsewhere, lines to keep: the first failure at once, then how it ended", async () => {
    const gate = createGate(slipway.cwd, "plain");
    const line = `if [ {item} = 1 ]; then exit 1; fi; ${gate.script}`;
    const lines = slipway.start(["run", "--array", "1-2", "--", "sh", "-c", line]);
    await lines.saw(/run \d+: 1\/2 \(50%\), 1 failed/, "stderr");
    gate.open();
    const { status, stdout, stderr } = await lines.ended;
    expect(status).toBe(1);
    expect(stdout).toMatch(/run \d+ sh: failed, 1 done, 1 failed/);
    // eslint-disable-next-line no-control-regex -- what a log file must not hold
    expect(stdout + stderr).not.toMatch(/[\r\u001b]/);
    const quiet = await run("run", "--quiet", "--array", "1-2", "--", "false");
    expect(quiet).toMatchObject({ status: 1, stdout: "", stderr: "" });
  });
});

describe("help, version and completion need no server", () => {
  beforeAll(async () => {
    slipway = await createHome();
  });
  afterAll(() => slipway.cleanup());

  const verbs =
    "run submit wait cancel retry list show logs why events status up down pilots clusters journal completion";

  it("--help of everything ends with 0 and shows usage and an example", async () => {
    const top = await run("--help");
    expect(top.status).toBe(0);
    for (const verb of verbs.split(" ")) expect(top.stdout, verb).toMatch(new RegExp(`^  ${verb} `, "m"));
    const helps = await Promise.all(verbs.split(" ").map((verb) => run(verb, "--help")));
    for (const [at, help] of helps.entries()) {
      expect(help, verbs.split(" ")[at]).toMatchObject({ status: 0, stderr: "" });
      if (verbs.split(" ")[at] !== "status") expect(help.stdout).toMatch(/^Usage: slipway /);
      expect(help.stdout, verbs.split(" ")[at]).toContain("\nExamples:\n");
    }
    expect((await run("help", "run")).stdout).toBe(helps[0]!.stdout);
    expect((await run("pilots", "list", "--help")).status).toBe(0);
  });

  it("--version prints the version", async () => {
    expect((await run("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await run("-V")).status).toBe(0);
  });

  it("a wrong verb or option is a usage error that names the nearest", async () => {
    for (const [words, near] of [
      [["runn"], "run"],
      [["list", "--limt", "3"], "--limit"],
      [["run", "--arry", "1-3", "--", "true"], "--array"],
      [["run", "x.yaml", "--retrys", "3"], "--retries"],
    ] as const) {
      const outcome = await run(...words);
      expect(outcome.status, words.join(" ")).toBe(2);
      expect(outcome.stderr).toContain(near);
      expect(outcome.stderr).not.toContain("    at ");
    }
    expect((await run()).status).toBe(2);
  });

  it("a wrong verb is an error also where its help is asked for, and nothing else is shown", async () => {
    const helped = [
      [["rnu", "--help"], "unknown command 'rnu'; did you mean 'run'?"],
      [["help", "rnu"], "unknown command 'rnu'; did you mean 'run'?"],
      [["--help", "rnu"], "unknown command 'rnu'; did you mean 'run'?"],
      [["frobnicate", "-h"], "unknown command 'frobnicate'\n"],
      [["pilots", "lits"], "unknown command 'pilots lits'; did you mean 'pilots list'?"],
      [["pilots", "lits", "--help"], "unknown command 'pilots lits'; did you mean 'pilots list'?"],
      [["help", "clusters", "chek"], "unknown command 'clusters chek'; did you mean 'clusters check'?"],
      [["tokens", "frobnicate", "--help"], "unknown command 'tokens frobnicate'\n"],
      [["journal", "--quiet", "frobnicate", "--help"], "unknown command 'journal frobnicate'\n"],
    ] as const;
    const outcomes = await Promise.all(helped.map(([words]) => run(...words)));
    for (const [at, [words, message]] of helped.entries()) {
      expect(outcomes[at], words.join(" ")).toMatchObject({ status: 2, stdout: "" });
      expect(outcomes[at]!.stderr).toContain(`error: ${message}`);
    }
    const asJson = await run("help", "rnu", "--json");
    expect({ ...asJson, stderr: JSON.parse(asJson.stderr) as unknown }).toMatchObject({
      status: 2,
      stderr: { error: { code: "usage", facts: { detail: "unknown command 'rnu'; did you mean 'run'?" } } },
    });
    for (const words of [["help"], ["help", "help"], ["--help", "run"], ["help", "pilots", "list", "--quiet"]])
      expect(await run(...words), words.join(" ")).toMatchObject({ status: 0, stderr: "" });
  });

  it("help of a command never runs it, whatever follows", async () => {
    const ofRun = (await run("run", "--help")).stdout;
    for (const words of [
      ["help", "run", "echo"],
      ["help", "run", "--", "echo"],
      ["--home", "x", "help", "run"],
    ])
      expect(await run(...words), words.join(" ")).toMatchObject({ status: 0, stdout: ofRun, stderr: "" });
  });

  it("completion for bash can be sourced and completes verbs and options", async () => {
    const { stdout, status } = await run("completion", "bash");
    expect(status).toBe(0);
    const complete = (line: string): string[] => {
      const words = line.split(" ");
      const script = `${stdout}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _slipway; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const bash = spawnSync("bash", ["--norc", "-eu", "-c", script], { encoding: "utf8", cwd: slipway.cwd });
      expect(bash.stderr).toBe("");
      return bash.stdout.trimEnd().split("\n");
    };
    expect(complete("slipway ")).toEqual(expect.arrayContaining(verbs.split(" ")));
    expect(complete("slipway sub")).toEqual(["submit"]);
    expect(complete("slipway run --ar")).toEqual(["--array"]);
    expect(complete("slipway pilots li")).toEqual(["list"]);
    expect((await run("completion", "zsh")).stdout).toContain("#compdef slipway");
    expect((await run("completion", "fish")).stdout).toContain("complete -c slipway");
    expect((await run("completion", "tcsh")).status).toBe(2);
  });
});
