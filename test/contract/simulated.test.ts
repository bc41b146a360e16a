import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { JobRequest, JobStatus, Provider } from "../../src/managers/provider.ts";
import { createSimulatedProvider } from "../../src/managers/simulated/driver/provider.ts";
import { SIMULATED_ARRAY } from "../../src/managers/simulated/options.ts";
import { QUIET, type Simulation } from "../../src/managers/simulated/simulation.ts";
import { processesUnder } from "../cli/processes-under.ts";
import { until } from "../until.ts";
import { providerContract } from "./provider-contract.ts";

let contractDirectory = "";

providerContract({
  name: "simulated",
  boot: async () => {
    contractDirectory = await mkdtemp(join(tmpdir(), "slw-"));
    return {
      create: async () =>
        createSimulatedProvider({ simulation: { ...QUIET, nodes: 20, graceMs: 2000 }, directory: contractDirectory }),
      request: async ({ line, ...job }) => ({ ...job, command: ["/bin/sh", "-c", line] }),
      stop: () => rm(contractDirectory, { recursive: true, force: true }),
    };
  },
  held: ["--hold"],
  waiting: ["--begin=3600"],
  refused: { options: ["--partition=nowhere"], words: /invalid partition: nowhere/ },
  array: SIMULATED_ARRAY,
  oddName: "ü b'\"$(;)|&=",
  skip: {
    "says why a job is held, and why one waits, in words that have a plain meaning": "a simulation gives no reasons",
    "asks and cancels 200 jobs with at most two commands each": "a simulation is asked without commands",
    "asks and cancels an array of 12 with at most two commands each": "a simulation is asked without commands",
    "does not take a manager that gives no answer for one that has no jobs, and says that it gives none":
      "a simulation always answers",
  },
});

describe("a simulated cluster", () => {
  let root: string;
  let jobs = 0;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "slw-"));
  });
  afterEach(async () => {
    for (const { pid } of await processesUnder(root))
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // it has ended by itself meanwhile
      }
    await rm(root, { recursive: true, force: true });
  });
  it("starts what a server wrote down as running and was killed before it started", async () => {
    const ran = join(root, "ran");
    const { nativeId } = await create().submit(await request(`echo >>${ran}; exec sleep 60`));
    const times = async (): Promise<number> => (await readFile(ran, "utf8").catch(() => "")).length;
    await until("it to run", async () => (await times()) === 1);
    const path = join(root, "state", "state.json");
    const state = JSON.parse(await readFile(path, "utf8")) as { jobs: { directory: string; processes: string[] }[] };
    for (const id of state.jobs[0]!.processes) process.kill(-Number(id.split(":")[0]), "SIGKILL");
    await until("its end", async () => (await processesUnder(state.jobs[0]!.directory)).length === 0);
    // as it was then: neither its processes nor a status are written down
    await writeFile(path, JSON.stringify({ ...state, jobs: [{ ...state.jobs[0], processes: [] }] }));
    const successor = create();
    expect((await successor.poll([nativeId])).get(nativeId)).toMatchObject({ state: "active" });
    await until("it to run again", async () => (await times()) === 2);
    await successor.cancel([nativeId]);
    await until("its end", async () => (await successor.poll([nativeId])).get(nativeId)!.state === "ended");
  });

  const create = (change: Partial<Simulation> = {}): Provider =>
    createSimulatedProvider({ simulation: { ...QUIET, ...change }, directory: join(root, "state") });
  const request = async (line: string, ...options: string[]): Promise<JobRequest> => {
    jobs += 1;
    const directory = await mkdtemp(join(root, "job-"));
    return { name: `slw-sim-${process.pid}-${jobs}`, directory, command: ["/bin/sh", "-c", line], options };
  };
  const untilIn = (provider: Provider, id: string, state: string): Promise<JobStatus> => {
    let status: JobStatus;
    return until(
      () => `job ${id} to be ${state}, which is ${JSON.stringify(status)}`,
      async () => {
        status = (await provider.poll([id])).get(id)!;
        return status.state === state && status;
      },
    );
  };

  it("starts the command once on each node of a job, and takes the worst of their ends", async () => {
    const provider = create();
    const job = await request('echo "$SLIPWAY_SIMULATED_NODE"; [ "$SLIPWAY_SIMULATED_NODE" = sim1 ]', "--nodes=2");
    const { nativeId } = await provider.submit(job);
    expect(await untilIn(provider, nativeId, "ended")).toMatchObject({
      outcome: "failed",
      exitCode: 1,
      hosts: ["sim1", "sim2"],
    });
    const log = await readFile(join(job.directory, "agent.log"), "utf8");
    expect(log.trim().split("\n").toSorted()).toEqual(["sim1", "sim2"]);
  });

  it("lets jobs wait for nodes that are taken, and ends what is over its walltime", async () => {
    const provider = create({ nodes: 1, graceMs: 200 });
    const first = await provider.submit(await request("trap '' TERM; while :; do sleep 0.05; done", "--walltime=1"));
    const second = await provider.submit(await request("true"));
    expect((await provider.poll([second.nativeId])).get(second.nativeId)?.state).toBe("queued");
    expect(await untilIn(provider, first.nativeId, "ended")).toMatchObject({ outcome: "timeout" });
    expect(await untilIn(provider, second.nativeId, "ended")).toMatchObject({ outcome: "done" });
  });

  it.each([
    [{ nodeLossRate: 1, troubleAfterMs: 0 }, "lost"],
    [{ preemptionRate: 1, troubleAfterMs: 0 }, "preempted"],
    [{ failureRate: 1 }, "start-failed"],
  ])("%j: the job is %s, and leaves no process", async (change, outcome) => {
    const provider = create({ ...change, graceMs: 200 });
    const { nativeId } = await provider.submit(await request("sleep 1000"));
    const status = await untilIn(provider, nativeId, "ended");
    expect(status).toMatchObject({ outcome, reason: expect.stringContaining("simulated") });
    expect(await processesUnder(root)).toEqual([]);
  });

  it("rule 3: a successor knows how a job ended that it did not start", async () => {
    const gate = join(root, "gate");
    const { nativeId } = await create().submit(await request(`until [ -e ${gate} ]; do sleep 0.02; done; exit 5`));
    await writeFile(gate, "");
    expect(await untilIn(create(), nativeId, "ended")).toMatchObject({ outcome: "failed", exitCode: 5 });
  });

  it("rule 3: processes whose ids were not written down before a crash are found again", async () => {
    const { nativeId } = await create().submit(await request("sleep 1000"));
    const path = join(root, "state", "state.json");
    const state = JSON.parse(await readFile(path, "utf8")) as { jobs: { processes: string[] }[] };
    const [{ processes }] = state.jobs as [{ processes: string[] }];
    await writeFile(path, JSON.stringify({ ...state, jobs: [{ ...state.jobs[0], processes: [] }] }));
    const successor = create();
    expect((await successor.poll([nativeId])).get(nativeId)?.state).toBe("active");
    const { jobs: after } = JSON.parse(await readFile(path, "utf8")) as typeof state;
    expect(after[0]!.processes).toEqual(processes);
    await successor.cancel([nativeId]);
    expect(await untilIn(successor, nativeId, "ended")).toMatchObject({ outcome: "cancelled" });
  });

  it("refuses to go on with a memory that it cannot read", async () => {
    const provider = create();
    await provider.list("");
    await provider.submit(await request("true"));
    await writeFile(join(root, "state", "state.json"), '{"version":1,"jobs":[');
    await expect(provider.list("")).rejects.toThrow("not the state of a simulation");
  });
});
