import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CheckView, PilotView, RunView } from "../../src/api/schemas.ts";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { pilotSuite } from "./pilot-suite.ts";

/** Processes of a simulated job, according to its memory; the suite finds the memory in the home. */
let home = "";

interface Memory {
  readonly jobs: readonly { readonly id: number; readonly state: string; readonly processes: readonly string[] }[];
}

const memory = async (): Promise<Memory> =>
  JSON.parse(await readFile(join(home, "simulated", "hpc", "state.json"), "utf8").catch(() => '{"jobs":[]}')) as Memory;

/** As the kernel or an administrator would do it: all of its processes at once. */
const kill = async (nativeId: string): Promise<void> => {
  const job = (await memory()).jobs.find(({ id }) => String(id) === nativeId)!;
  for (const process_ of job.processes) process.kill(-Number(process_.split(":")[0]), "SIGKILL");
};

pilotSuite({
  name: "a simulated cluster",
  skip: {
    "clusters check lets the manager judge each queue, and leaves no job": "there is no manager beside the server",
  },
  boot: async () => ({
    cluster: { type: "simulated", simulation: { nodes: 4, "cores-per-node": 2, "kill-after": "2s" } },
    queue: { nodes: 1, cores: 2 },
    wrong: { keys: { partition: "nowhere" }, words: /invalid partition: nowhere/ },
    shortWalltime: 20,
    mostTasks: 8,
    onHome: (path) => {
      home = path;
    },
    cancelJob: kill,
    killNodeOf: async (nativeId) => {
      await kill(nativeId);
      return async () => undefined;
    },
    livingJobs: async () => (await memory()).jobs.filter(({ state }) => state !== "ended").map(({ id }) => String(id)),
    stop: async () => undefined,
  }),
});

describe("a simulated cluster with trouble", () => {
  let slipway: SlipwayHome;
  beforeEach(async () => {
    slipway = await createHome();
    await mkdir(slipway.home, { mode: 0o700 });
  });
  afterEach(() => slipway.cleanup());

  it("clusters check tells which queue the simulation would refuse", async () => {
    const queues = { good: { nodes: 2 }, bad: { nodes: 3 } };
    await writeFile(
      join(slipway.home, "clusters.yaml"),
      JSON.stringify({ clusters: { hpc: { type: "simulated", simulation: { nodes: 2 }, queues } } }),
    );
    await slipway.run(["up"]);
    const { ok, checks } = await slipway.json<CheckView>(["clusters", "check", "hpc"], { statuses: [4] });
    expect(ok).toBe(false);
    expect(checks.map(({ queue, ok: fine }) => [queue, fine])).toEqual([
      [null, true],
      ["good", true],
      ["bad", false],
    ]);
    expect(checks[2]!.detail).toContain("it asks for 3 nodes; there are 2");
  });

  it("rule 5: lost nodes, preemption and pilots that never start cost tasks nothing", async () => {
    const simulation = {
      nodes: 3,
      "cores-per-node": 2,
      "queue-wait": 1,
      "failure-rate": 0.2,
      "preemption-rate": 0.4,
      "node-loss-rate": 0.4,
      "trouble-after": "1s",
      "repair-time": "1s",
      "kill-after": "1s",
      seed: 5,
    };
    const queues = { q: { cores: 2, walltime: "10m", fleet: { max: 3, idle: "2s", period: "1s" } } };
    await writeFile(
      join(slipway.home, "clusters.yaml"),
      JSON.stringify({ limits: { losses: 100 }, clusters: { hpc: { type: "simulated", simulation, queues } } }),
    );
    expect((await slipway.run(["up"])).stderr).toBe("");
    const words = ["--cluster", "hpc", "--array", "1-60", "--", "sh", "-c", "sleep 0.5; echo $SLIPWAY_TASK >> ran"];
    const { run } = await slipway.json<{ run: number }>(["submit", ...words]);
    const { status } = await slipway.run(["wait", String(run)], { timeoutMs: 170_000 });
    expect(status).toBe(0);
    const view = await slipway.json<RunView>(["show", String(run)]);
    expect(view).toMatchObject({ counts: { DONE: 60 }, retries: 0 });
    const ran = (await readFile(join(slipway.cwd, "ran"), "utf8")).trim().split("\n");
    expect(new Set(ran).size).toBe(60);
    const reasons = (await slipway.json<PilotView[]>(["pilots", "list"])).map(({ reason }) => reason ?? "");
    expect(reasons.some((reason) => reason.includes("simulated"))).toBe(true);
  });
});
