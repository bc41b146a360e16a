import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunView, StatusView, TaskView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { processesUnder } from "./processes-under.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** Tasks as jobs of their own, with a real server: on this machine, and in a simulated batch system. */

let slipway: SlipwayHome;
beforeEach(async () => {
  slipway = await createHome();
  await mkdir(slipway.home, { mode: 0o700, recursive: true });
});
afterEach(() => slipway.cleanup());

const useClusters = (clusters: object): Promise<void> =>
  writeFile(join(slipway.home, "clusters.yaml"), JSON.stringify(clusters));

const simulated = (simulation: object = {}, queue: object = {}): object => ({
  default: "hpc",
  clusters: {
    hpc: {
      type: "simulated",
      simulation: { nodes: 2, "cores-per-node": 2, "kill-after": "1s", ...simulation },
      grace: "0.5s",
      queues: { q: { fleet: { period: "0.2s" }, ...queue } },
    },
  },
});

const submit = async (...tasks: object[]): Promise<number> => {
  await writeFile(join(slipway.cwd, "run.yaml"), JSON.stringify({ name: "r", tasks }));
  return (await slipway.json<{ run: number }>(["submit", "run.yaml"])).run;
};

const up = async (): Promise<void> => {
  expect(await slipway.run(["up"])).toMatchObject({ status: 0 });
};
const viewOf = (run: number): Promise<RunView> => slipway.json<RunView>(["show", String(run)]);
const taskOf = (id: string): Promise<TaskView> => slipway.json<TaskView>(["show", id]);
const ended = async (run: number): Promise<RunView> => {
  await slipway.run(["wait", String(run)]);
  return viewOf(run);
};
const pilots = async (): Promise<number> => (await slipway.json<StatusView>(["status"])).pilots.length;
const killServer = async (): Promise<void> => {
  const { pid } = (await slipway.json<StatusView>(["status"])).server;
  process.kill(pid, "SIGKILL");
  await until("the server is gone", async () => !(await processesUnder(slipway.root)).some((each) => each.pid === pid));
};

/** Each execution leaves a line in the file of its task. */
const noting = (then: string): string => `echo "$SLIPWAY_ATTEMPT" >>ran.$SLIPWAY_TASK; ${then}`;
const executions = async (): Promise<Map<string, string[]>> => {
  const names = (await readdir(slipway.cwd)).filter((name) => name.startsWith("ran."));
  const all = names.map(async (name) => {
    const lines = (await readFile(join(slipway.cwd, name), "utf8")).trim().split("\n");
    return [name.slice("ran.".length), lines] as const;
  });
  return new Map(await Promise.all(all));
};

describe("tasks as jobs on this machine", () => {
  it("row 001-2: each is one detached process; output, exit codes, retries and dependencies are as ever, without a pilot", async () => {
    await up();
    const run = await submit(
      { name: "a", run: "echo out $SLIPWAY_ATTEMPT; exit $((SLIPWAY_ATTEMPT < 2))", retries: 1, via: "job" },
      { name: "b", run: ["echo", "after"], after: "a", via: "job" },
      { name: "c", run: "exit 3", via: "job" },
      { name: "d", run: "echo alarm", after: { c: "failed" }, via: "job" },
    );
    const view = await ended(run);
    expect(view.counts).toEqual({ DONE: 3, FAILED: 1 });
    expect(await pilots()).toBe(0);
    expect((await slipway.run(["logs", `${run}.0`])).stdout).toBe("out 2\n");
    expect((await slipway.run(["logs", `${run}.1`])).stdout).toBe("after\n");
    const { attempts } = await taskOf(`${run}.0`);
    expect(attempts.map(({ state, exitCode }) => [state, exitCode])).toEqual([
      ["FAILED", 1],
      ["DONE", 0],
    ]);
    expect(await taskOf(`${run}.2`)).toMatchObject({ state: "FAILED", exitCode: 3 });
  });

  it("row 001-36: they and the tasks of pilots share what this machine has, also across a restart", async () => {
    await useClusters({ clusters: { local: { resources: { cpus: 2 }, grace: "1s" } } });
    await up();
    const gate = createGate(slipway.cwd, "holds");
    const job = await submit({ name: "job", run: gate.command, cpus: 2, via: "job" });
    await gate.arrived(1);
    const other = createGate(slipway.cwd, "waits");
    const piloted = await submit({ name: "piloted", run: other.command });
    await until("a pilot", async () =>
      (await slipway.json<StatusView>(["status"])).pilots.some(({ state }) => state === "PMGR_ACTIVE"),
    );
    expect((await viewOf(piloted)).counts["AGENT_EXECUTING"] ?? 0).toBe(0);
    await killServer();
    await up();
    await until("the agents", async () => (await slipway.json<StatusView>(["status"])).pilots[0]?.agents.length === 1);
    const third = await submit({ name: "third", run: ["true"], via: "job" });
    expect((await viewOf(third)).state).not.toBe("DONE");
    expect((await viewOf(piloted)).counts["AGENT_EXECUTING"] ?? 0).toBe(0);
    gate.open();
    expect((await ended(job)).state).toBe("DONE");
    await other.arrived(1);
    other.open();
    expect((await ended(piloted)).state).toBe("DONE");
    expect((await ended(third)).state).toBe("DONE");
  });
});

describe("tasks as jobs in a batch system", () => {
  it("rule 3: a server killed again and again loses and doubles nothing", async () => {
    await useClusters(simulated());
    await up();
    const run = await submit({ name: "a", run: noting("sleep 0.3"), each: { array: "1-16" }, via: "job" });
    for (const tasks of [1, 4, 8, 12]) {
      await until(`${tasks} tasks`, async () => (await executions()).size >= tasks);
      await killServer();
      await up();
    }
    const view = await ended(run);
    expect(view.counts).toEqual({ DONE: 16 });
    const ran = await executions();
    expect([...ran.values()].flat()).toEqual(Array.from({ length: 16 }, () => "1"));
    expect(await pilots()).toBe(0);
  });

  it("rows 001-49 and 001-50: at most ten of a shape wait in the manager; the highest priority goes first", async () => {
    await useClusters(simulated({ nodes: 1, "cores-per-node": 1 }));
    await up();
    const gate = createGate(slipway.cwd);
    await submit({ name: "first", run: gate.command, via: "job" });
    await gate.arrived(1);
    const many = Array.from({ length: 15 }, (_, i) => ({ name: `low${i}`, run: "echo low >>order", via: "job" }));
    const run = await submit(...many);
    interface Memory {
      readonly jobs: readonly { readonly name: string; readonly state: string }[];
    }
    const waiting = async (): Promise<string[]> => {
      const path = join(slipway.home, "simulated", "hpc", "state.json");
      const { jobs } = JSON.parse(await readFile(path, "utf8")) as Memory;
      return jobs.filter(({ state }) => state === "queued").map(({ name }) => name);
    };
    await until("ten jobs", async () => (await waiting()).length === 10);
    const high = await submit({ name: "high", run: "echo high >>order", priority: 5, via: "job" });
    await until("the newcomer takes a place", async () => (await waiting()).some((name) => name.includes("high")));
    expect((await waiting()).length).toBeLessThanOrEqual(10);
    gate.open();
    expect((await ended(high)).state).toBe("DONE");
    expect((await ended(run)).counts).toEqual({ DONE: 15 });
    expect((await readFile(join(slipway.cwd, "order"), "utf8")).split("\n").indexOf("high")).toBeLessThan(12);
  });

  it("rule 5: an agent that is killed costs a loss, a walltime that is over is a failure, and nothing survives", async () => {
    await useClusters(simulated({}, { walltime: "4s" }));
    await up();
    const gate = createGate(slipway.cwd);
    const lost = await submit({ name: "lost", run: gate.command, via: "job", "time-limit": "1m" });
    await gate.arrived(1);
    const agents = (await processesUnder(slipway.root)).filter(({ command }) => command.includes('"taskJob"'));
    for (const { pid } of agents) process.kill(pid, "SIGKILL");
    expect(await gate.arrived(2)).toEqual([`${lost}.0:1`, `${lost}.0:2`]);
    gate.open();
    expect((await ended(lost)).state).toBe("DONE");
    expect((await taskOf(`${lost}.0`)).attempts.map(({ state }) => state)).toEqual(["LOST", "DONE"]);

    const late = await submit({ name: "late", run: "echo began; sleep 1000", via: "job" });
    expect((await ended(late)).state).toBe("FAILED");
    const task = await taskOf(`${late}.0`);
    expect(task.attempts).toHaveLength(1);
    expect(task.reason).toContain("walltime");
    expect((await slipway.run(["logs", `${late}.0`])).stdout).toBe("began\n");
  });

  it("an array counts as one that waits; its elements are followed and taken back one by one", async () => {
    await useClusters(simulated({ nodes: 1 }));
    await up();
    const gate = createGate(slipway.cwd);
    const run = await submit({ name: "a", run: noting(gate.script), each: { array: "1-25" }, via: "job" });
    await gate.arrived(2);
    const directories = await readdir(join(slipway.home, "jobs"));
    expect(directories.filter((name) => /-[0-9a-f]{12}$/.test(name))).toHaveLength(1);
    for (const task of [3, 12, 25]) await slipway.run(["cancel", `${run}.${task}`]);
    await killServer();
    gate.open();
    await up();
    expect((await ended(run)).counts).toEqual({ DONE: 22, CANCELED: 3 });
    const ran = await executions();
    expect(ran.size).toBe(22);
    expect([...ran.values()].flat().every((attempt) => attempt === "1")).toBe(true);
  });

  it("cancelling ends what runs and takes back what waits", async () => {
    await useClusters(simulated({ nodes: 1, "cores-per-node": 1 }));
    await up();
    const gate = createGate(slipway.cwd);
    const run = await submit({ name: "a", run: gate.command, each: { array: "1-5" }, via: "job" });
    await gate.arrived(1);
    await slipway.run(["cancel", String(run)]);
    expect((await ended(run)).counts).toEqual({ CANCELED: 5 });
    gate.open();
    const next = await submit({ name: "b", run: "echo there", via: "job" });
    expect((await ended(next)).state).toBe("DONE");
    expect(await gate.arrived(1)).toHaveLength(1);
  });

  it("`down` lets what runs come to its end, and what waits is there for the next server; `down --now` interrupts", async () => {
    await useClusters(simulated({ nodes: 1, "cores-per-node": 1 }));
    await up();
    const gate = createGate(slipway.cwd);
    const run = await submit({ name: "a", run: gate.command, each: { array: "1-3" }, via: "job" });
    await gate.arrived(1);
    const down = slipway.start(["down"]);
    await until("the server stops", async () => (await slipway.serverLog()).includes('"stopping"'));
    gate.open();
    expect((await down.ended).status).toBe(0);
    await up();
    expect((await ended(run)).counts).toEqual({ DONE: 3 });

    const second = createGate(slipway.cwd, "second");
    const again = await submit({ name: "b", run: second.command, via: "job" });
    await second.arrived(1);
    await slipway.run(["down", "--now"]);
    second.open();
    await up();
    expect((await ended(again)).state).toBe("DONE");
    expect((await taskOf(`${again}.0`)).attempts).toHaveLength(2);
  });
});
