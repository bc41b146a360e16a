import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FLEET } from "../../../src/config/fleet-keys.ts";
import { MANAGERS } from "../../../src/managers/managers.ts";
import { createState } from "../../../src/core/state.ts";
import type { JobRequest, Provider } from "../../../src/managers/provider.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { createAgents } from "../../../src/agent-links/agents.ts";
import { createClock } from "../../../src/server/clock.ts";
import { type Engine, createEngine } from "../../../src/server/engine.ts";
import { type Journal, openJournal } from "../../../src/journal/index.ts";
import { type Pilots, type PilotsOptions, createPilots } from "../../../src/pilots/pilots.ts";
import type { Fleet } from "../../../src/pilots/fleet.ts";
import { createReplay } from "../../../src/core/snapshot.ts";

/** The keeper of fleets with a real journal and a workload manager that a test plays. */

let home: string;
const open: (() => Promise<void>)[] = [];

let clock = createClock();

beforeEach(async () => {
  clock = createClock();
  home = await mkdtemp(join(tmpdir(), "slw-"));
  await mkdir(join(home, "journal"));
});

afterEach(async () => {
  for (const close of open.splice(0)) await close();
  await rm(home, { recursive: true, force: true });
});

interface Setup {
  readonly engine: Engine;
  readonly journal: Journal;
  readonly pilots: Pilots;
}

const start = async (epoch: number, provider: Provider, change: Partial<PilotsOptions> = {}): Promise<Setup> => {
  const state = createState();
  const pages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };
  const replay = createReplay(state, pages, {
    restore: () => {
      throw new Error("nothing is archived here");
    },
  });
  const journal = await openJournal({ dir: join(home, "journal"), epoch }, replay);
  const engine = createEngine(state, createScheduler(), journal, clock);
  const agents = createAgents({
    engine,
    token: "t",
    limits: { outputPerTask: 2 ** 30, outputPerRun: 2 ** 36 },
    clusterOf: () => ({ cluster: "local", queue: "default", endsAt: Infinity }),
    log: () => undefined,
  });
  const fleet: Fleet = {
    cluster: "local",
    queue: "default",
    manager: MANAGERS.local,
    provider,
    policy: { ...FLEET, ...MANAGERS.local.fleet, min: 1 },
    nodes: 1,
    offer: {},
    signal: "SIGTERM",
    signalBefore: 30,
    leaseMs: 60_000,
    prepare: async ({ jobName, directory }) => ({ name: jobName, directory, command: ["true"] }),
  };
  agents.adopt();
  const pilots = createPilots({
    home,
    prefix: "slipway-test",
    fleets: [fleet],
    engine,
    agents,
    log: () => undefined,
    defaultCluster: "local",
    ...change,
  });
  open.push(async () => {
    pilots.close();
    agents.close();
    if (journal.state !== "closed") await journal.close();
  });
  return { engine, journal, pilots };
};

const never = new Promise<never>(() => undefined);

const manager = (change: Partial<Provider>): Provider => ({
  describe: async () => ({ version: "test", largest: {} }),
  submit: () => never,
  poll: async (ids) => new Map(ids.map((id) => [id, { state: "active", raw: "R" }])),
  cancel: async () => undefined,
  list: async () => [],
  ...change,
});

const submitted = (
  provider: Partial<Provider> = {},
): { provider: Provider; job: Promise<JobRequest>; jobs: JobRequest[] } => {
  const jobs: JobRequest[] = [];
  let tell: (job: JobRequest) => void = () => undefined;
  const job = new Promise<JobRequest>((resolve) => {
    tell = resolve;
  });
  return {
    jobs,
    job,
    provider: manager({
      submit: (request) => {
        jobs.push(request);
        tell(request);
        return never;
      },
      ...provider,
    }),
  };
};

it("a fleet's period may be longer than a timer of Node can wait (24.8 days)", async () => {
  const warnings: string[] = [];
  const warned = (warning: Error): void => void warnings.push(warning.name);
  process.on("warning", warned);
  try {
    const { provider, job } = submitted();
    await start(1, provider, { periodMs: 30 * 86_400_000 });
    await job;
    await new Promise((resolve) => setImmediate(resolve));
    // Node warns if it shortens a longer time to 1 ms
    expect(warnings).toEqual([]);
  } finally {
    process.off("warning", warned);
  }
});

describe("rule 3: submitting to a manager", () => {
  it("rule 3: the intent is on disk before the manager is asked", async () => {
    const { provider, job } = submitted();
    const { journal, engine } = await start(1, provider);
    const { name } = await job;
    expect([...engine.state.pilots.values()]).toMatchObject([{ jobName: name }]);
    expect(journal.durable).toBeGreaterThan(0);
  });

  it("rule 3: after a crash before the answer, the job is found by its name and not submitted again", async () => {
    const first = submitted();
    const before = await start(1, first.provider);
    const { name } = await first.job;
    before.pilots.close();
    await before.journal.close();
    const second = submitted({ list: async () => [{ name, nativeId: "4711" }] });
    const { engine } = await start(2, second.provider);
    await new Promise<void>((resolve) => {
      engine.listeners.committed = (event) => {
        if (event.type === "pilot.changed") resolve();
      };
    });
    expect([...engine.state.pilots.values()]).toMatchObject([
      { jobName: name, nativeId: "4711", state: "PMGR_ACTIVE_PENDING" },
    ]);
    expect(second.jobs).toEqual([]);
  });

  it("rule 3: if the manager never got it, the intent is closed and a new job is submitted", async () => {
    const first = submitted();
    const before = await start(1, first.provider);
    const { name } = await first.job;
    before.pilots.close();
    await before.journal.close();
    const second = submitted();
    const { engine } = await start(2, second.provider);
    expect((await second.job).name).not.toBe(name);
    expect([...engine.state.pilots.values()].map(({ state }) => state)).toEqual(["FAILED", "PMGR_LAUNCHING"]);
  });

  it("rule 10: a wall clock that was set back between two servers hides no intent", async () => {
    const first = submitted();
    const before = await start(1, first.provider);
    const { name } = await first.job;
    before.pilots.close();
    await before.journal.close();
    const hourAgo = createClock();
    clock = () => hourAgo() - 3_600_000;
    const second = submitted();
    const { engine } = await start(2, second.provider);
    expect((await second.job).name).not.toBe(name);
    expect([...engine.state.pilots.values()].map(({ state }) => state)).toEqual(["FAILED", "PMGR_LAUNCHING"]);
  });
});

describe("rule 5: silence is not death", () => {
  it("rule 5: agents of no fleet have a lease too: started by hand, or of a queue that is gone", async () => {
    const { provider } = submitted();
    const before = await start(1, provider);
    const join = (agent: number, pilot: number): void => {
      const uuid = `00000000-0000-4000-8000-00000000000${agent}`;
      const facts = { host: "h", version: "v", resources: {}, output: "", seq: 0 };
      before.engine.commit({ type: "agent.joined", at: 1, agent, uuid, pilot, ...facts });
    };
    const facts = { cluster: "gone", queue: "default", jobName: "slipway-test-9" };
    before.engine.commit({ type: "pilot.requested", at: 1, pilot: 9, ...facts });
    join(1, 0);
    join(2, 9);
    before.pilots.close();
    await before.journal.close();
    const { engine } = await start(2, submitted().provider, { fleets: [], periodMs: 10, orphanLeaseMs: 50 });
    const agents = [...engine.state.agents.values()];
    expect(agents.map(({ ended }) => ended)).toEqual([0, 0]);
    await new Promise<void>((resolve) => {
      engine.listeners.committed = (event) => {
        if (event.type === "agents.lost") resolve();
      };
    });
    expect(agents.every(({ ended }) => ended > 0)).toBe(true);
  });
});
