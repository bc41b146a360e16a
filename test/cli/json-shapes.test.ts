import { mkdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import * as schemas from "../../src/api/schemas.ts";
import { TASK_STATES } from "../../src/core/states.ts";
import { createGate } from "./gate.ts";
import { createHome, type SlipwayHome } from "./slipway-process.ts";

/**
 * The shapes that scripts rely on, as design/cli.md names them: every field with its type, one document (or one per
 * line in a stream), errors as JSON on standard error, and the exit statuses. Fields may be added, never removed.
 */

let slipway: SlipwayHome;

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(
    join(slipway.home, "clusters.yaml"),
    "clusters: { local: { resources: { cpu: 2, mem: 2G, licence: 3 } } }\n",
  );
  await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

const iso = z.iso.datetime({ offset: true });
const counts = z.partialRecord(z.enum(TASK_STATES), z.number().int().positive());

/** From design/cli.md, word by word; other fields are welcome. */
const Run = z.looseObject({
  id: z.number().int().positive(),
  name: z.string(),
  state: z.enum(["WAITING", "RUNNING", "DONE", "FAILED", "CANCELED"]),
  total: z.number().int(),
  counts,
  submitted: iso,
  finished: iso.nullable(),
  eta: z.number().nullable(),
});
const Task = z.looseObject({
  id: z.string().regex(/^\d+\.\d+$/),
  name: z.string(),
  state: z.enum(TASK_STATES),
  exitCode: z.number().int().nullable(),
  signal: z.string().nullable(),
  reason: z.string().nullable(),
  attempts: z.array(
    z.looseObject({
      n: z.number().int().positive(),
      agent: z.string().nullable(),
      pilot: z.string().nullable(),
      started: iso.nullable(),
      finished: iso.nullable(),
      exitCode: z.number().int().nullable(),
      lost: z.boolean(),
    }),
  ),
  resources: z.record(z.string(), z.number()),
});
const Status = z.looseObject({
  server: z.looseObject({ pid: z.number().int(), host: z.string(), url: z.url(), started: iso }),
  fleets: z.array(z.looseObject({ cluster: z.string(), queue: z.string() })),
  pilots: z.array(z.looseObject({ id: z.string(), state: z.string() })),
  runs: z.array(Run),
});
const Why = z.strictObject({
  cause: z.string().min(1),
  detail: z.string().min(1),
  remedy: z.string().min(1),
  waits: z.string().min(1).optional(),
});
const Failure = z.strictObject({
  error: z.looseObject({ code: z.string().min(1), message: z.string().min(1), hint: z.string().min(1) }),
});

const ask = async (args: string[], statuses: number[] = [0]): Promise<unknown> => slipway.json(args, { statuses });
/** The error of a command that must fail: one document on standard error, nothing on standard output. */
const refusal = async (args: string[], status: number): Promise<z.infer<typeof Failure>["error"]> => {
  const outcome = await slipway.run([...args.slice(0, 1), "--json", ...args.slice(1)]);
  expect(outcome, args.join(" ")).toMatchObject({ status, stdout: "" });
  expect(outcome.stderr.trimEnd().split("\n"), args.join(" ")).toHaveLength(1);
  return Failure.parse(JSON.parse(outcome.stderr)).error;
};

describe("--json", () => {
  it("submit gives {run}", async () => {
    const answer = z.looseObject({ run: z.number().int() }).parse(await ask(["submit", "--", "true"]));
    expect((await slipway.run(["wait", String(answer.run), "--json"])).status).toBe(0);
  });

  it("run gives the finished run as show gives it, and nothing else; 0 when done, 1 when something failed", async () => {
    const done = Run.parse(await ask(["run", "--array", "1-3", "--", "echo", "{item}"]));
    expect(done).toMatchObject({ name: "echo", state: "DONE", total: 3, counts: { DONE: 3 }, eta: null });
    expect(await ask(["show", String(done.id)])).toEqual(done);
    expect(Date.parse(done.finished!)).toBeGreaterThanOrEqual(Date.parse(done.submitted));
    const failed = Run.parse(await ask(["run", "--name", "bad", "--", "false"], [1]));
    expect(failed).toMatchObject({ name: "bad", state: "FAILED", counts: { FAILED: 1 } });
    // What the API promises holds for the CLI too.
    schemas.RunView.parse(failed);
  });

  it("show RUN while it runs: counts add up, finished is null", async () => {
    const gate = createGate(slipway.cwd, "shape");
    const { run } = (await ask(["submit", "--array", "1-5", "--", ...gate.command])) as { run: number };
    await gate.arrived(2);
    const view = Run.parse(await ask(["show", String(run)]));
    expect(Object.values(view.counts).reduce((sum, n) => sum + (n ?? 0), 0)).toBe(5);
    expect(view).toMatchObject({ total: 5, finished: null });
    expect(["WAITING", "RUNNING"]).toContain(view.state);
    const listed = z.array(Run).parse(await ask(["list"]));
    expect(listed[0]).toMatchObject({ id: run, finished: null });
    Why.parse(await ask(["why", String(run)]));
    Why.parse(await ask(["why", `${run}.1`]));
    Why.parse(await ask(["why", `${run}.5`]));
    Task.parse(await ask(["show", `${run}.1`]));
    const waiting = Task.parse(await ask(["show", `${run}.5`]));
    expect(waiting).toMatchObject({ exitCode: null, signal: null, reason: null });
    const ended = slipway.run(["wait", String(run), "--json"]);
    gate.open();
    expect(Run.parse(JSON.parse((await ended).stdout))).toMatchObject({ id: run, state: "DONE" });
  });

  it("show RUN.TASK: done, failed, killed by a signal, with its attempts and resources", async () => {
    const options = ["--cpus", "0.5", "--mem", "100M", "--resource", "licence=2"];
    const good = (await ask(["run", ...options, "--", "true"])) as { id: number };
    expect(Task.parse(await ask(["show", `${good.id}.0`]))).toMatchObject({
      id: `${good.id}.0`,
      name: "true",
      state: "DONE",
      exitCode: 0,
      signal: null,
      reason: null,
      resources: { cpus: 0.5, mem: 100 * 2 ** 20, licence: 2 },
      attempts: [{ n: 1, exitCode: 0, lost: false }],
    });
    const bad = (await ask(["run", "--retries", "1", "--", "sh", "-c", "exit 7"], [1])) as { id: number };
    const failed = Task.parse(await ask(["show", `${bad.id}.0`]));
    expect(failed).toMatchObject({ state: "FAILED", exitCode: 7, signal: null, reason: "exit code 7" });
    expect(failed.attempts.map(({ n, exitCode }) => [n, exitCode])).toEqual([
      [1, 7],
      [2, 7],
    ]);
    for (const attempt of failed.attempts) {
      expect(attempt.agent).not.toBeNull();
      expect(attempt.pilot).not.toBeNull();
      expect(Date.parse(attempt.finished!)).toBeGreaterThanOrEqual(Date.parse(attempt.started!));
    }
    const dead = (await ask(["run", "--", "sh", "-c", "kill -9 $$"], [1])) as { id: number };
    const killed = Task.parse(await ask(["show", `${dead.id}.0`]));
    expect(killed).toMatchObject({ state: "FAILED", exitCode: null, signal: "SIGKILL" });
    expect(killed.reason).toContain("SIGKILL");
    schemas.TaskView.parse(killed);
    Why.parse(await ask(["why", `${bad.id}.0`]));
  });

  it("status, list, pilots list and clusters list", async () => {
    const status = Status.parse(await ask(["status"]));
    expect(status.server.host).toBe(hostname());
    schemas.StatusView.parse(status);
    const runs = z.array(Run).parse(await ask(["list"]));
    expect(runs.length).toBeGreaterThan(0);
    expect(z.array(z.looseObject({ id: z.string() })).parse(await ask(["pilots", "list"]))).toHaveLength(1);
    expect(await ask(["clusters", "list"])).toMatchObject([{ name: "local", resources: { licence: 3 } }]);
    expect(await ask(["clusters", "show", "local"])).toMatchObject({ name: "local", type: "local" });
  });

  it("cancel and retry", async () => {
    const { id } = (await ask(["run", "--", "false"], [1])) as { id: number };
    expect(await ask(["cancel", String(id)])).toEqual({ run: id, canceled: 0, stopping: 0 });
    expect(await ask(["retry", String(id)])).toEqual({ run: id, reopened: 1 });
    expect((await slipway.run(["wait", String(id), "--json"])).status).toBe(1);
  });

  it("events and logs stream one document a line", async () => {
    const { id } = (await ask(["run", "--array", "1-2", "--", "sh", "-c", "echo a {item}; printf 'no end'"])) as {
      id: number;
    };
    const events = (await slipway.run(["events", "--json", "--run", String(id)])).stdout.trimEnd().split("\n");
    for (const line of events) schemas.EventView.parse(JSON.parse(line));
    const lines = (await slipway.run(["logs", "--json", String(id)])).stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
      [1, 2].flatMap((task) =>
        [`a ${task}`, "no end"].map((line) => ({ task: `${id}.${task}`, stream: "stdout", line })),
      ),
    );
    const one = (await slipway.run(["logs", "--json", `${id}.2`])).stdout.trimEnd().split("\n");
    expect(JSON.parse(one[0]!)).toEqual({ task: `${id}.2`, stream: "stdout", line: "a 2" });
  });

  it("errors are one document on standard error with code, message and hint; 2 for usage and what does not validate", async () => {
    await writeFile(join(slipway.cwd, "bad.yaml"), "tasks:\n  - run: x\n    cpu: 3\n");
    expect(await refusal(["run", "bad.yaml"], 2)).toMatchObject({ code: "unknown-key", facts: { key: "cpu" } });
    expect(await refusal(["run", "--array", "1-x", "--", "true"], 2)).toMatchObject({ code: "bad-value" });
    expect(await refusal(["run", "--cpus", "99", "--", "true"], 2)).toMatchObject({
      code: "cannot-fit",
      facts: { resource: "cpus", largest: expect.anything() as unknown },
    });
    expect(await refusal(["show", "99999"], 2)).toMatchObject({ code: "no-such-run" });
    expect(await refusal(["show", "1.99999"], 2)).toMatchObject({ code: "no-such-task" });
    expect(await refusal(["show", "x"], 2)).toMatchObject({ code: "usage" });
    expect(await refusal(["show"], 2)).toMatchObject({ code: "usage" });
    expect(await refusal(["frobnicate"], 2)).toMatchObject({ code: "usage" });
    expect(await refusal(["list", "--nonsense"], 2)).toMatchObject({ code: "usage" });
    expect(await refusal(["up"], 1)).toMatchObject({ code: "server-running" });
  });

  it("3 without a server", async () => {
    const nowhere = join(slipway.root, "nowhere");
    for (const verb of [["status"], ["list"], ["show", "1"], ["submit", "--", "true"], ["down"], ["logs", "1"]])
      expect(await refusal([verb[0]!, "--home", nowhere, ...verb.slice(1)], 3)).toMatchObject({ code: "no-server" });
  });

  it("130 when interrupted, with the run as it ended", async () => {
    const gate = createGate(slipway.cwd, "interrupted");
    const run = slipway.start(["run", "--json", "--", ...gate.command]);
    await gate.arrived(1);
    run.child.kill("SIGINT");
    const { status, stdout } = await run.ended;
    expect(status).toBe(130);
    expect(Run.parse(JSON.parse(stdout))).toMatchObject({ state: "CANCELED", counts: { CANCELED: 1 } });
  });

  it("up and down", async () => {
    const other = ["--home", join(slipway.root, "other")];
    const server = (await ask(["up", ...other])) as { pid: number };
    z.looseObject({ pid: z.number(), host: z.string(), url: z.url(), started: iso }).parse(server);
    expect(await ask(["down", ...other])).toMatchObject({ state: "stopped", pid: server.pid });
  });
});
