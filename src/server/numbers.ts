import type { Sums } from "../api/overview.ts";
import type { Agents } from "../agent-links/agents.ts";
import type { ClustersConfig } from "../config/clusters-file.ts";
import { formatResource } from "../core/quantities.ts";
import { fromUnits } from "../core/resources.ts";
import { type Shape, runState } from "../core/run.ts";
import type { Agent } from "../core/state.ts";
import { PILOT_STATES, TASK_STATES, Task, isFinalPilot } from "../core/states.ts";
import type { Journal, Reserve } from "../journal/index.ts";
import { type Family, type Sample, createGauge, largestOf, render } from "../metrics/families.ts";
import { VERSION } from "../protocol/package-version.ts";
import type { Fleet } from "../pilots/fleet.ts";
import { knownOf } from "../pilots/largest.ts";
import type { Counts } from "./counts.ts";
import type { Engine } from "./engine.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { createLoopWatch } from "./loop-watch.ts";

/** What operators see at /metrics. Read when somebody asks: runs, pilots and agents are walked, tasks never are. */

export interface NumbersOptions {
  readonly engine: Engine;
  readonly agents: Agents;
  readonly pilots: { readonly fleets: () => readonly Fleet[] };
  readonly clusters: ClustersConfig;
  readonly journal: Journal;
  readonly reserve: Reserve;
  readonly lifecycle: Lifecycle;
  readonly counts: Counts;
}

export interface Numbers {
  /** In Prometheus' text format. */
  text(): string;
  sums(): Sums;
}

/** The words for people; TASK_STATES are in docs/glossary.md. */
const WORDS: Readonly<Record<number, string>> = {
  [Task.NEW]: "waiting",
  [Task.PENDING]: "ready",
  [Task.SCHEDULING]: "starting",
  [Task.AGENT_PENDING]: "starting",
  [Task.EXECUTING]: "running",
  [Task.DONE]: "done",
  [Task.CANCELED]: "cancelled",
  [Task.FAILED]: "failed",
};

export const taskWord = (code: number): string =>
  WORDS[code] ?? (TASK_STATES[code]?.includes("STAGING") === true ? "staging" : "starting");

const PILOT_WORDS: Readonly<Record<(typeof PILOT_STATES)[number], string>> = {
  NEW: "new",
  PMGR_LAUNCHING_PENDING: "new",
  PMGR_LAUNCHING: "submitting",
  PMGR_ACTIVE_PENDING: "queued",
  PMGR_ACTIVE: "active",
  DONE: "done",
  CANCELED: "cancelled",
  FAILED: "failed",
};

const tasksByState = function* (engine: Engine): Generator<Sample> {
  for (const word of new Set(TASK_STATES.map((_, code) => taskWord(code)))) yield { labels: { state: word }, value: 0 };
  for (const { counts } of engine.state.live)
    for (const [code, value] of counts.entries()) if (value > 0) yield { labels: { state: taskWord(code) }, value };
};

const runsByState = function* (engine: Engine): Generator<Sample> {
  for (const state of ["waiting", "running"]) yield { labels: { state }, value: 0 };
  for (const run of engine.state.live) yield { labels: { state: runState(run).toLowerCase() }, value: 1 };
};

const shapeName = ({ resources, ranks, cluster, queue, job }: Shape, defaultCluster: string): string => {
  const asks = Object.entries(resources)
    .filter(([, units]) => units > 0)
    .map(([name, units]) => `${name}=${formatResource(name, units)}`);
  const place = `${cluster ?? defaultCluster}${queue === undefined ? "" : `/${queue}`}`;
  return [
    ...asks,
    ...(ranks === undefined ? [] : [`ranks=${ranks.count}`]),
    `on=${place}`,
    ...(job ? ["job"] : []),
  ].join(" ");
};

const waitingByShape = ({ engine, clusters }: NumbersOptions): Sample[] => {
  const counts = new Map<string, number>();
  const add = (shape: Shape, tasks: number): void => {
    const name = shapeName(shape, clusters.default);
    counts.set(name, (counts.get(name) ?? 0) + tasks);
  };
  const { scheduler } = engine;
  for (const { shape, waiting } of scheduler.demand()) add(shape, waiting);
  for (const { shape, heads } of scheduler.jobs.buckets()) for (const { tasks } of heads()) add(shape, tasks);
  return largestOf(counts, "shape");
};

const pilotsByState = function* ({ engine, pilots }: NumbersOptions): Generator<Sample> {
  for (const { cluster, queue } of pilots.fleets())
    for (const state of ["queued", "active"]) yield { labels: { cluster, queue, state }, value: 0 };
  for (const { cluster, queue, state } of engine.state.pilots.values())
    if (!isFinalPilot(state)) yield { labels: { cluster, queue, state: PILOT_WORDS[state] }, value: 1 };
};

/** Agents that have not ended, each with its cluster. */
const livingAgents = function* ({ engine, agents, clusters }: NumbersOptions) {
  const { state } = engine;
  for (const link of agents.links()) {
    const agent: Agent | undefined = state.agents.get(link.id);
    if (agent === undefined) continue;
    const pilot = state.pilots.get(agent.pilot);
    const job = agent.taskJob === undefined ? undefined : state.taskJobs.get(agent.taskJob.id);
    yield { agent, link, cluster: pilot?.cluster ?? job?.cluster ?? agent.cluster ?? clusters.default };
  }
};

const agentsByState = function* (options: NumbersOptions): Generator<Sample> {
  for (const state of ["connected", "suspect", "draining"])
    yield { labels: { cluster: options.clusters.default, state }, value: 0 };
  for (const { link, cluster } of livingAgents(options)) {
    const state = link.draining ? "draining" : link.channel === undefined ? "suspect" : "connected";
    yield { labels: { cluster, state }, value: 1 };
  }
};

/** Names of resources come from users: the rest are left out. */
const MOST_RESOURCES = 20;

/** What agents have, and what of it tasks hold. The agent of a task's own job has nothing but that task. */
export const amountsOf = function* (
  options: NumbersOptions,
): Generator<{ cluster: string; resource: string; total: number; used: number }> {
  const names = new Set<string>(["cpus", "gpus", "mem"]);
  for (const { agent, cluster } of livingAgents(options)) {
    const free = agent.taskJob === undefined ? options.engine.scheduler.freeOf(agent.id) : {};
    for (const [resource, units] of Object.entries(knownOf(agent.resources))) {
      if (names.size >= MOST_RESOURCES && !names.has(resource)) continue;
      names.add(resource);
      const used = Math.max(0, units - (free?.[resource] ?? (free === undefined ? units : 0)));
      yield { cluster, resource, total: fromUnits(resource, units), used: fromUnits(resource, used) };
    }
  }
};

const amounts = function* (options: NumbersOptions, which: "total" | "used"): Generator<Sample> {
  for (const { cluster, resource, ...of } of amountsOf(options))
    if (Number.isFinite(of[which])) yield { labels: { cluster, resource }, value: of[which] };
};

const ofServer = (options: NumbersOptions): Family[] => {
  const { engine, journal, reserve, lifecycle } = options;
  const one = (value: number): Sample[] => [{ value }];
  return [
    createGauge("slipway_build_info", "The version of this server; always 1.", () => [
      { labels: { version: VERSION }, value: 1 },
    ]),
    createGauge("slipway_ready", "1 while new runs are taken.", () => one(lifecycle.blocked() === null ? 1 : 0)),
    createGauge("slipway_journal_pending_bytes", "Bytes of the journal that are not on disk yet.", () =>
      one(journal.pendingBytes),
    ),
    createGauge("slipway_journal_records_total", "Records in the journal.", () => one(journal.appended), "counter"),
    createGauge("slipway_journal_reserve_bytes", "Room on disk that is kept for the journal.", () =>
      one(reserve.bytes),
    ),
    createGauge("slipway_tasks_queued", "Tasks that could run now and have no place yet.", () =>
      one(engine.scheduler.waiting()),
    ),
  ];
};

const ofProcess = (): Family[] => [
  createGauge(
    "process_cpu_seconds_total",
    "CPU time of the server.",
    () => {
      const { user, system } = process.cpuUsage();
      return [{ value: (user + system) / 1e6 }];
    },
    "counter",
  ),
  createGauge("process_resident_memory_bytes", "Memory of the server.", () => [{ value: process.memoryUsage.rss() }]),
  createGauge("process_start_time_seconds", "When the server started, in seconds since 1970.", () => [
    { value: Math.round(performance.timeOrigin) / 1000 },
  ]),
];

const sumsOf = (options: NumbersOptions): Sums => {
  const tasks = { waiting: 0, ready: 0, starting: 0, running: 0, staging: 0 };
  for (const { counts } of options.engine.state.live)
    for (const [code, value] of counts.entries()) {
      const word = taskWord(code);
      if (word in tasks) tasks[word as keyof typeof tasks] += value;
    }
  const resources = new Map<string, { cluster: string; resource: string; total: number; used: number }>();
  for (const { cluster, resource, total, used } of amountsOf(options)) {
    const key = JSON.stringify([cluster, resource]);
    const sum = resources.get(key) ?? { cluster, resource, total: 0, used: 0 };
    resources.set(key, { ...sum, total: sum.total + total, used: sum.used + used });
  }
  const { ended } = options.counts;
  return {
    tasks,
    ended: { done: ended[Task.DONE]!, failed: ended[Task.FAILED]!, cancelled: ended[Task.CANCELED]! },
    resources: [...resources.values()],
  };
};

export const createNumbers = (options: NumbersOptions): Numbers => {
  const { engine, counts } = options;
  const loop = createLoopWatch();
  const families: Family[] = [
    createGauge("slipway_tasks", "Tasks of runs that have not ended, by state.", () => tasksByState(engine)),
    createGauge(
      "slipway_tasks_waiting",
      "Tasks that could run now and have no place yet, by what they ask for; the 50 largest, the rest as other.",
      () => waitingByShape(options),
    ),
    createGauge("slipway_runs", "Runs that have not ended, by state.", () => runsByState(engine)),
    createGauge("slipway_pilots", "Pilots that have not ended, by state.", () => pilotsByState(options)),
    createGauge("slipway_agents", "Agents, by state.", () => agentsByState(options)),
    createGauge("slipway_resources", "What agents have; bytes of memory.", () => amounts(options, "total")),
    createGauge("slipway_resources_used", "What tasks hold of it.", () => amounts(options, "used")),
    ...counts.families,
    ...loop.families,
    ...ofServer(options),
    ...ofProcess(),
  ];
  return {
    text: () => {
      loop.asked();
      return render(families);
    },
    sums: () => sumsOf(options),
  };
};
