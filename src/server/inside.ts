import { createHash } from "node:crypto";
import { hostname, tmpdir, uptime } from "node:os";
import { join } from "node:path";
import { type Agents, createAgents } from "../agent-links/agents.ts";
import type { ClusterConfig, ClustersConfig } from "../config/clusters-file.ts";
import type { ClustersChange } from "../config/compare-clusters.ts";
import type { Resources } from "../core/resources.ts";
import type { GroupSpec } from "../core/spec.ts";
import type { Agent, State } from "../core/state.ts";
import { isFinalPilot } from "../core/states.ts";
import { VERSION } from "../protocol/package-version.ts";
import { DEFAULT_PREFETCH } from "../scheduler/capacity.ts";
import { createPressureOrder } from "../scheduler/pressure-order.ts";
import { holdBack } from "../scheduler/held-back.ts";
import { type AccountRule, createScheduler } from "../scheduler/scheduler.ts";
import { readArchiveSync } from "../archive/archive.ts";
import { type ChangeOptions, createChangeClusters } from "./change-clusters.ts";
import { clockAtStart, createClock } from "./clock.ts";
import { type Compactor, createCompactor } from "../archive/compactor.ts";
import { type Engine, createEngine } from "./engine.ts";
import { accountRules } from "../pilots/accounts.ts";
import { type Descriptions, createDescriptions } from "../check/descriptions.ts";
import { type Standings, createStandings } from "../check/standings.ts";
import { createFleets } from "../pilots/create-fleets.ts";
import { createLargestMemory, createMemoryShare } from "../pilots/largest-memory.ts";
import { largestOf } from "../pilots/largest.ts";
import { type TaskJobs, createTaskJobs } from "../jobs/jobs.ts";
import { markOf } from "../jobs/names.ts";
import { createTaskQueues } from "../jobs/task-queues.ts";
import { type Pilots, createPilots } from "../pilots/pilots.ts";
import { createSpools } from "../pilots/spools.ts";
import { simulatedNode } from "../pilots/simulated-fleets.ts";
import { learnedMemory } from "../learned/auto.ts";
import type { Expected } from "../learned/expected.ts";
import { createFirstTasks } from "../learned/first-tasks.ts";
import { createAutoRequests } from "./auto-requests.ts";
import { type Learning, openLearning, unknownMs } from "./learning.ts";
import type { Counts } from "./counts.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Log } from "./logger.ts";
import type { Stored, Home } from "./open-home.ts";
import { type RunWatch, createRunWatch } from "./service/run-watch.ts";
import { type Judge, judgeFirst } from "../skips/judge.ts";
import { createLooker } from "../skips/looker.ts";
import { wire } from "./wiring.ts";

/** Everything that works behind the doors: engine, agents, pilots, compaction. */
export interface Inside {
  readonly engine: Engine;
  readonly agents: Agents;
  readonly pilots: Pilots;
  readonly jobs: TaskJobs;
  readonly compactor: Compactor;
  readonly runWatch: RunWatch;
  /** Which tasks need not run. */
  readonly judge: Judge;
  readonly learning: Learning;
  /** What comes with the cores of a task: its share of a node's memory. */
  readonly memoryShare: (spec: GroupSpec) => number;
  /** What the largest node of each usable cluster offers. */
  readonly largest: ReadonlyMap<string, Resources>;
  /** What several agents share. */
  readonly shared: readonly AccountRule[];
  readonly standings: Standings;
  /** What each manager last said of itself. */
  readonly descriptions: Descriptions;
  /** Takes over clusters that were read again. */
  readonly changeClusters: (change: ClustersChange) => void;
  /** Used in names that must not clash with those of other homes. */
  readonly homeHash: string;
  /** When this server started. */
  readonly started: string;
}

/** Detects local resources that clusters.yaml does not declare. */
export type Detect = (declared: Resources) => Promise<Resources>;

export interface InsideOptions {
  readonly home: Home;
  readonly stored: Stored;
  readonly lifecycle: Lifecycle;
  readonly counts: Counts;
  /** Directory of the built files. */
  readonly bundles: string;
  readonly detect: Detect;
  readonly log: Log;
}

const scratchOf = (cluster: ClusterConfig): string => cluster.scratch ?? process.env["SLIPWAY_SCRATCH"] ?? tmpdir();

const largestNodes = async ({ clusters }: ClustersConfig, detect: Detect): Promise<Map<string, Resources>> => {
  const largest = new Map<string, Resources>();
  for (const cluster of clusters.values()) {
    const { name, type, licences } = cluster;
    if (type === "local") largest.set(name, await detect({ ...cluster.resources, ...licences }));
    else if (type === "simulated") largest.set(name, await detect({ ...simulatedNode(cluster), ...licences }));
    else largest.set(name, { ...largestOf(cluster), ...licences });
  }
  return largest;
};

/** Records that this server has started, and what only its start can decide. */
const announce = (
  { commit, clock, state }: Engine,
  epoch: number,
  here: { bootId: string; uptimeMs: number },
): void => {
  commit({
    type: "server.started",
    at: clock(),
    epoch,
    host: hostname(),
    pid: process.pid,
    version: VERSION,
    ...(here.bootId === "" ? {} : here),
  });
  // a journal of format 1 does not say which tasks were given up: decided here, once, for all later starts
  if (state.undecided > 0) commit({ type: "losses.judged", at: clock(), limit: state.lossLimit });
};

/** Where an agent counts towards. */
const placeOfAgent =
  (state: State, clusters: ClustersConfig) =>
  ({ pilot, cluster, queue }: Pick<Agent, "pilot" | "cluster" | "queue">) => {
    const known = state.pilots.get(pilot);
    return {
      cluster: known?.cluster ?? cluster ?? clusters.default,
      queue: known?.queue ?? queue ?? "",
      endsAt: Infinity,
    };
  };

/** What stands before the agents: the first tasks of a group go alone, and what need not run is skipped. */
const createQueues = ({ home, bundles, log }: InsideOptions, expected: Expected, shared: readonly AccountRule[]) => {
  const order = createPressureOrder(expected.ofGroup);
  const first = createFirstTasks(expected);
  const looker = createLooker({ command: [process.execPath, join(bundles, "server.js"), "look-files"], log });
  const judge = judgeFirst(createScheduler(DEFAULT_PREFETCH, home.clusters.default, shared, order), looker);
  const scheduler = holdBack(judge.scheduler, first.mayGo);
  expected.onChange = scheduler.expectationChanged;
  return { first, judge, scheduler };
};

export const createInside = async (options: InsideOptions): Promise<Inside> => {
  const { home, stored, lifecycle, bundles, log } = options;
  const { root, claim, clusters, keys } = home;
  const { journal, state, feed } = stored;
  const largest = await largestNodes(clusters, options.detect);
  const here = { bootId: claim.lease.bootId, uptimeMs: Math.round(uptime() * 1000) };
  const clock = createClock(clockAtStart(state, here));
  const started = new Date(clock()).toISOString();
  const learning = await openLearning({
    home: root,
    state,
    clock,
    clusters,
    mayWrite: () => lifecycle.full === null && claim.fence(),
    log,
  });
  const { expected } = learning;
  const largestMemory = createLargestMemory({ state, clusters, largest });
  const memoryShare = createMemoryShare({ clusters, largest });
  const nodes = { most: (spec: GroupSpec) => largestMemory(spec, 0), share: memoryShare };
  const shared = accountRules(clusters, largest);
  const { first, judge, scheduler } = createQueues(options, expected, shared);
  const engine = createEngine(state, scheduler, journal, clock, {
    losses: clusters.limits.losses,
    restore: (summary) => readArchiveSync(root, summary.file),
    memory: { largest: largestMemory, learned: learnedMemory(expected, nodes) },
  });
  judge.start(engine);
  const requests = createAutoRequests({
    engine,
    known: expected,
    nodes,
    first,
    scheduler,
    patienceMs: (group) => unknownMs(clusters, group),
  });

  const agents = createAgents({
    engine,
    token: keys.agentToken,
    limits: clusters.limits,
    clusterOf: placeOfAgent(state, clusters),
    log,
  });
  agents.adopt();

  const homeHash = createHash("sha256").update(root).digest("hex").slice(0, 8);
  const making = { home: root, bundles, scratchOf };
  const living = () => [
    ...[...state.pilots.values()].filter((pilot) => pilot.nativeId !== "" && !isFinalPilot(pilot.state)),
    ...jobs.living(),
  ];
  const fleetsOf = (declared: ClustersConfig) => createFleets({ ...making, clusters: declared, largest, living });
  const queuesOf: ChangeOptions["queuesOf"] = (declared, of) =>
    createTaskQueues({ ...making, clusters: declared, fleets: of });
  const fleets = fleetsOf(clusters);
  const spools = createSpools({ home: root, engine, agents, log });
  const place = { home: root, host: hostname(), mark: markOf(root, keys.agentToken), defaultCluster: clusters.default };
  const jobs: TaskJobs = createTaskJobs({ ...place, engine, agents, spools, log, queues: queuesOf(clusters, fleets) });
  const descriptions = createDescriptions();
  const standings = createStandings({ clusters: () => clusters.clusters.values(), clock, log, descriptions });
  const pilots = createPilots({
    home: root,
    prefix: `slipway-${homeHash}`,
    fleets,
    engine,
    agents,
    log,
    spools,
    companion: jobs.companion,
    cared: jobs.cared,
    defaultCluster: clusters.default,
    onHeard: standings.heard,
    onWaiting: (pilot, text) => feed.publish({ event: "pilot.waiting", detail: { pilot, manager: text } }, clock()),
  });
  const runWatch = createRunWatch(engine);
  wire({ ...options, engine, agents, pilots, jobs, feed, runWatch, expected, requests, journal });
  announce(engine, claim.epoch, here);

  const compactor = createCompactor({
    home: root,
    journal,
    state,
    keepHistory: clusters.keepHistory,
    command: (upTo) => [process.execPath, join(bundles, "server.js"), "compact-child", "--home", root, "--up-to", upTo],
    log,
  });
  const changeClusters = createChangeClusters({
    clusters,
    largest,
    fleetsOf,
    queuesOf,
    pilots,
    jobs,
    descriptions,
    standings,
    engine,
  });

  void standings.tryAll();
  return {
    engine,
    agents,
    changeClusters,
    pilots,
    jobs,
    compactor,
    runWatch,
    judge,
    learning,
    memoryShare,
    largest,
    shared,
    standings,
    descriptions,
    homeHash,
    started,
  };
};
