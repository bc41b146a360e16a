import { randomUUID } from "node:crypto";
import { duplexPair } from "node:stream";
import { join } from "node:path";
import { FLEET, type FleetConfig } from "../../../src/config/fleet-keys.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { createReplay } from "../../../src/core/snapshot.ts";
import { type Pilot, createState } from "../../../src/core/state.ts";
import type { AgentMessage, ServerMessage } from "../../../src/protocol/messages.ts";
import { MANAGERS } from "../../../src/managers/managers.ts";
import type { JobRequest, JobStatus, Provider } from "../../../src/managers/provider.ts";
import { DEFAULT_PREFETCH } from "../../../src/scheduler/capacity.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { type Agents, createAgents } from "../../../src/agent-links/agents.ts";
import { createClock } from "../../../src/server/clock.ts";
import { type Engine, createEngine } from "../../../src/server/engine.ts";
import type { Fleet } from "../../../src/pilots/fleet.ts";
import { type Pilots, createPilots } from "../../../src/pilots/pilots.ts";
import { type Journal, openJournal } from "../../../src/journal/index.ts";
import { createPeer, helloOf } from "../../cli/protocol-peer.ts";
import { group, noRefusals, spec } from "../core/model.ts";

/** Keepers of fleets with a real journal, a workload manager in memory, and agents at the other end of a stream. */

/** A manager whose jobs do what a test says; it counts the requests. */
export interface TestManager extends Provider {
  readonly jobs: Map<string, JobRequest>;
  readonly statuses: Map<string, JobStatus>;
  readonly polls: (readonly string[])[];
  readonly cancelled: string[];
  lists: number;
}

export const createManager = (change: Partial<Provider> = {}): TestManager => {
  const manager: TestManager = {
    jobs: new Map(),
    statuses: new Map(),
    polls: [],
    cancelled: [],
    lists: 0,
    describe: async () => ({ version: "test", largest: {} }),
    submit: async (job) => {
      const nativeId = String(100 + manager.jobs.size);
      manager.jobs.set(nativeId, job);
      manager.statuses.set(nativeId, { state: "queued", raw: "PD", reason: "Priority" });
      return { nativeId };
    },
    poll: async (ids) => {
      manager.polls.push(ids);
      return new Map(ids.map((id) => [id, manager.statuses.get(id)!]));
    },
    cancel: async (ids) => {
      manager.cancelled.push(...ids);
      for (const id of ids) manager.statuses.set(id, { state: "ended", raw: "CA", outcome: "cancelled" });
    },
    list: async () => {
      manager.lists += 1;
      return [...manager.jobs].map(([nativeId, { name }]) => ({ nativeId, name }));
    },
    ...change,
  };
  return manager;
};

export const fleetOf = (provider: Provider, policy: Partial<FleetConfig>, change: Partial<Fleet> = {}): Fleet => ({
  cluster: "hpc",
  queue: "cpu",
  manager: MANAGERS.slurm,
  provider,
  policy: { ...FLEET, ...policy },
  nodes: 1,
  offer: { cpus: 4 * FRACTION },
  signal: "SIGTERM",
  signalBefore: 30,
  leaseMs: 60_000,
  outputs: () => ["job.out"],
  prepare: async ({ jobName, directory }) => ({ name: jobName, directory, command: ["true"] }),
  ...change,
});

export interface Setup {
  readonly engine: Engine;
  readonly agents: Agents;
  readonly pilots: Pilots;
  readonly journal: Journal;
  pilot(id: number): Pilot | undefined;
  /** Submits a run of this many tasks of one core each. */
  work(tasks: number, change?: { queue?: string; cluster?: string; timeRequest?: number }): number;
  close(): Promise<void>;
}

export const startKeepers = async (
  home: string,
  fleets: readonly Fleet[],
  options: { epoch?: number; periodMs?: number; defaultCluster?: string } = {},
): Promise<Setup> => {
  const state = createState();
  const pages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };
  const replay = createReplay(state, pages, {
    restore: () => {
      throw new Error("nothing is archived here");
    },
  });
  const journal = await openJournal({ dir: join(home, "journal"), epoch: options.epoch ?? 1 }, replay);
  const defaultCluster = options.defaultCluster ?? "hpc";
  const engine = createEngine(state, createScheduler(DEFAULT_PREFETCH, defaultCluster), journal, createClock());
  const agents = createAgents({
    engine,
    token: "t",
    limits: { outputPerTask: 2 ** 30, outputPerRun: 2 ** 36 },
    clusterOf: ({ pilot }) => {
      const known = state.pilots.get(pilot);
      return { cluster: known?.cluster ?? "", queue: known?.queue ?? "", endsAt: Infinity };
    },
    log: () => undefined,
  });
  agents.adopt();
  engine.rebuildQueues();
  engine.listeners.assigned = (agent, parts) => agents.assign(agent, parts);
  const pilots = createPilots({
    home,
    prefix: "slipway-test",
    fleets,
    engine,
    agents,
    log: () => undefined,
    defaultCluster,
    periodMs: options.periodMs ?? 20,
  });
  agents.listeners.joined = pilots.joined;
  agents.listeners.suspect = pilots.look;
  agents.listeners.gone = pilots.look;
  return {
    engine,
    agents,
    pilots,
    journal,
    pilot: (id) => state.pilots.get(id),
    work: (tasks, change = {}) => {
      const run = state.nextRun;
      const made = spec([group("t", tasks, change)]);
      engine.commit({ type: "run.opened", at: engine.clock(), run, uuid: randomUUID(), spec: made });
      engine.commit({ type: "run.committed", at: engine.clock(), run });
      return run;
    },
    close: async () => {
      pilots.close();
      agents.close();
      if (journal.state !== "closed") await journal.close();
      noRefusals(state);
    },
  };
};

export interface TestAgent {
  readonly heard: ServerMessage[];
  send(message: AgentMessage): void;
  cut(): void;
}

/** An agent of a pilot, connected. */
export const connectAgent = (setup: Setup, pilot: number, change: { endsInMs?: number } = {}): TestAgent => {
  const [ours, theirs] = duplexPair();
  setup.agents.accept(theirs);
  const { channel, received } = createPeer<ServerMessage, AgentMessage>(ours);
  channel.trust();
  channel.send(helloOf({ token: "t", pilot, host: "node", ...change }));
  return { heard: received, send: (message) => channel.send(message), cut: () => void theirs.destroy() };
};
