import { z } from "zod";
import { LOST_REASONS } from "../core/output-lost.ts";
import { PEAK_SOURCES } from "../core/peak.ts";
import { PILOT_STATES, TASK_STATES } from "../core/states.ts";
import { RetrySetInput } from "../config/retry-set.ts";
import { TaskJobView, TaskJobsView } from "./job-schemas.ts";

/** Shapes of the REST API and of `--json`. Fields may be added; those here keep their meaning. Times are ISO 8601. */

const time = z.string().nullable();

export const RunState = z.enum(["WAITING", "RUNNING", "DONE", "FAILED", "CANCELED"]);

/** Bytes that a task wrote and that were not kept; `reason` is what came first. */
export const OutputLostView = z.object({
  bytes: z.number(),
  stdout: z.number(),
  stderr: z.number(),
  reason: z.enum(LOST_REASONS.filter((reason) => reason !== null)),
});

/**
 * The most memory that an attempt had at once, of a task with ranks the largest of any rank, and who saw it: its
 * control group, the kernel's accounts when it ended, or the agent's watch.
 */
export const PeakMemoryView = z.object({
  bytes: z.number(),
  source: z.enum(PEAK_SOURCES.filter((source) => source !== null)),
});

/** Seconds of CPU time of all processes of an attempt, of a task with ranks the sum; in steps of 0.01. */
export const CpuTimeView = z.object({ user: z.number(), system: z.number() });

/**
 * Bytes that all processes of an attempt read from storage and wrote to it, of a task with ranks the sum: by the
 * kernel's accounts when they ended. What the page cache answered is not counted.
 */
export const IoView = z.object({ readBytes: z.number(), writtenBytes: z.number(), source: z.enum(["rusage"]) });

export const GroupView = z.object({
  name: z.string(),
  total: z.number(),
  counts: z.record(z.string(), z.number()),
  after: z.array(z.string()),
});

export const RunView = z.object({
  id: z.number(),
  name: z.string(),
  state: RunState,
  total: z.number(),
  /** Tasks per state, states without tasks left out. */
  counts: z.record(z.string(), z.number()),
  /** Handlers (`after: {x: failed}`) that were not needed; counts.CANCELED includes them, but they are not failures. */
  unneeded: z.number(),
  /** Tasks that are DONE without having run, because the run that this one resumes has done them. */
  skipped: z.number().optional(),
  /** The run whose done tasks were skipped. */
  resumes: z.number().nullable().optional(),
  submitted: time,
  started: time,
  finished: time,
  /** Seconds between its ends and the retries that followed: no part of the time it took. */
  idle: z.number().optional(),
  /** Seconds to the end as expected now; null when unknown or ended. */
  eta: z.number().nullable(),
  /** When it ends: before p10 with a probability of 10 %, before p50 of 50 %, before p90 of 90 %; null as `eta`. */
  etaRange: z.object({ p10: z.string(), p50: z.string(), p90: z.string() }).nullable(),
  /** Why `eta` is null while the run has not ended. */
  etaReason: z.string().nullable(),
  /** Why the run was cancelled, if it was. */
  reason: z.string().nullable(),
  retries: z.number(),
  losses: z.number(),
  /** Tasks whose output is incomplete, and how many bytes are missing. */
  outputLost: z.object({ tasks: z.number(), bytes: z.number() }).nullable(),
  groups: z.array(GroupView).optional(),
  /** How tasks are numbered: index = start + row × step. */
  numbering: z.object({ start: z.number(), step: z.number() }),
});

export const AttemptView = z.object({
  n: z.number(),
  /** LOST: with its agent, or ended by its agent's own end; it was run again at no cost to its retries. */
  state: z.enum([...TASK_STATES, "LOST"]),
  agent: z.string().nullable(),
  pilot: z.string().nullable(),
  /** The manager's id of its own job, while that is remembered; a server of an earlier version does not say. */
  job: z.string().nullable().optional(),
  host: z.string().nullable(),
  assigned: time,
  started: time,
  finished: time,
  exitCode: z.number().nullable(),
  signal: z.string().nullable(),
  reason: z.string().nullable(),
  lost: z.boolean(),
  outputLost: OutputLostView.nullable(),
  peakMemory: PeakMemoryView.nullable(),
  /** Seconds from its start to its end; null before that. */
  wall: z.number().nullable().optional(),
  /** What it used; null before its end, and where the spawner cannot tell. */
  cpu: CpuTimeView.nullable().optional(),
  io: IoView.nullable().optional(),
  /** The last lines that it wrote, up to 10 of each stream; only where one task is asked for. */
  lastStdout: z.string().nullable().optional(),
  lastStderr: z.string().nullable().optional(),
  /** Bytes it was given, where attempts of one task may differ: with mem-retry, or {attempt} in mem. */
  mem: z.number().nullable(),
});

/** The ranks of a task: how many, where its latest attempt has or had them, and what they ask for together. */
export const RanksView = z.object({
  count: z.number(),
  /** As the run's file asks; null where it leaves that open. */
  nodes: z.number().nullable(),
  /** By node, the head first; empty before it was placed. */
  places: z.array(z.object({ host: z.string().nullable(), agent: z.string(), ranks: z.number() })),
  /** `resources` are for one rank; these are for all of them. */
  totals: z.record(z.string(), z.number()),
});

export const TaskView = z.object({
  id: z.string(),
  /** Its number in the run: 17 of 3.17. */
  index: z.number(),
  name: z.string(),
  state: z.enum(TASK_STATES),
  /** It is DONE without having run, because the run that its own resumes has done it. */
  skipped: z.boolean().optional(),
  /** It was skipped for its outputs, and not because its run resumes another. */
  upToDate: z.boolean().optional(),
  exitCode: z.number().nullable(),
  signal: z.string().nullable(),
  reason: z.string().nullable(),
  command: z.array(z.string()),
  item: z.string().nullable(),
  cwd: z.string(),
  /** In order; of many the first 3 and the last 5. */
  attempts: z.array(AttemptView),
  /** How many others there were. */
  attemptsDropped: z.number(),
  /** What people read: cpus and gpus as numbers, mem and tmp in bytes. */
  resources: z.record(z.string(), z.number()),
  /** What `retry --set` gave it, until it is retried again: amounts as in `resources`, times in seconds. */
  set: z
    .object({
      resources: z.record(z.string(), z.number()).optional(),
      timeLimit: z.number().optional(),
      timeRequest: z.number().optional(),
      retries: z.number().optional(),
    })
    .nullable()
    .optional(),
  /** How much of its last attempt's output is kept, and how much was lost. */
  stdoutBytes: z.number().nullable(),
  stderrBytes: z.number().nullable(),
  outputLost: OutputLostView.nullable(),
  /** Of its last attempt; null before its end, and where nobody could tell. */
  peakMemory: PeakMemoryView.nullable(),
  wall: z.number().nullable().optional(),
  cpu: CpuTimeView.nullable().optional(),
  io: IoView.nullable().optional(),
  /** Of a task with ranks; null of any other. */
  ranks: RanksView.nullable().optional(),
  /** Path when the user chose a file, else null: kept by Slipway. */
  stdout: z.string().nullable(),
  stderr: z.string().nullable(),
  lastStderr: z.string().nullable(),
  /** Whether it goes through pilots or is a job of its own; a server of an earlier version does not say. */
  via: z.enum(["pilot", "job"]).optional(),
  /** Its own job, the last one; null: it has none, or none any more. */
  job: TaskJobView.nullable().optional(),
});

/** Requested and used in the mean, and the request that would have done for all; null where nothing is known. */
const Compared = z.object({
  requested: z.number().nullable(),
  used: z.number().nullable(),
  enough: z.number().nullable(),
});

/** What the tasks that ended well asked for, used, and would have needed, group by group. */
export const EfficiencyView = z.object({
  run: z.number(),
  groups: z.array(
    z.object({
      name: z.string(),
      /** Those that ended well. */
      tasks: z.number(),
      ranks: z.number(),
      /** Of a task with all its ranks; `used` is CPU time over duration. `enough` is for each rank, as in the run's file. */
      cores: Compared,
      /** Bytes of each rank; of a task the rank that used most. */
      memory: Compared,
      /** Seconds; `requested` is the time-request. */
      time: Compared,
      /** Attempts that were killed for memory and tried again with more. */
      killed: z.number(),
    }),
  ),
  /** Of a run with many groups the first are told. */
  groupsLeftOut: z.number(),
});

export const WhyView = z.object({
  cause: z.string(),
  detail: z.string(),
  remedy: z.string(),
  /** Of what is ready but does not run: what it waits for, alone, for one line. */
  waits: z.string().optional(),
});

/** The same of something that was named, with what the name was taken for. */
export const NamedWhyView = WhyView.extend({
  of: z.object({ kind: z.enum(["run", "task", "pilot", "launch", "job", "fleet", "cluster"]), id: z.string() }),
});

export const ServerView = z.object({
  pid: z.number(),
  host: z.string(),
  url: z.string(),
  started: time,
  version: z.string(),
  home: z.string(),
  epoch: z.number(),
  state: z.enum(["running", "stopping", "journal-full"]),
  detail: z.string().nullable(),
  /** Room that is kept for the journal, in bytes; `lent`: the disk is full and the journal writes there. */
  journalReserve: z.object({ bytes: z.number(), of: z.number(), lent: z.boolean() }),
  /** Where its port is open, and why there; a server of an earlier version does not say. */
  listens: z.object({ host: z.string(), reason: z.string() }).optional(),
  /** By cluster, which overrides of a project's slipway.yaml it started with: the same text for the same overrides. */
  overrides: z.record(z.string(), z.string()).optional(),
  /** How many files it may open (`ulimit -n`), and how many it needs when all fleets are at their largest. */
  files: z.object({ limit: z.number(), wanted: z.number() }).optional(),
  /** The clusters that count now: from which files, read when; a server of an earlier version does not say. */
  clustersFile: z
    .object({
      files: z.array(z.string()),
      read: z.string(),
      /** Why the files as they are now were not taken over: the old ones stay. */
      problem: z.string().nullable(),
      /** What counts only from the next start on. */
      later: z.array(z.string()),
      /** What is probably not meant as it is written. */
      warnings: z.array(z.string()),
    })
    .optional(),
});

/** clusters.yaml was read again. */
export const ReloadView = z.object({
  files: z.array(z.string()),
  /** What is other than before, one thing each. */
  changes: z.array(z.string()),
  later: z.array(z.string()),
  warnings: z.array(z.string()),
});

export const AgentView = z.object({
  id: z.string(),
  host: z.string(),
  state: z.enum(["connected", "suspect", "draining", "gone"]),
  resources: z.record(z.string(), z.number()),
  running: z.number(),
  queued: z.number(),
});

export const PilotView = z.object({
  id: z.string(),
  cluster: z.string(),
  queue: z.string(),
  state: z.enum(PILOT_STATES),
  nativeId: z.string().nullable(),
  reason: z.string().nullable(),
  /** What the manager says while its job has not begun or is suspended. */
  waiting: z.string().nullable(),
  /** Takes no new tasks. */
  draining: z.boolean(),
  /** Head and tail of what its job printed, where it did not start. */
  output: z.string().nullable(),
  requested: time,
  active: time,
  /** When Slipway ends what still runs there; null when unknown or never. */
  ends: time,
  ended: time,
  agents: z.array(AgentView),
});

export const FleetView = z.object({
  cluster: z.string(),
  queue: z.string(),
  strategy: z.string(),
  /** Pilots that have not ended; how many of them have agents, and how many of those take no new tasks. */
  pilots: z.number(),
  active: z.number(),
  draining: z.number(),
  min: z.number(),
  max: z.number(),
  waiting: z.number(),
  problem: z.string().nullable(),
  /** What was said of the last pilot that did not start, until one does. */
  failure: z.string().nullable(),
  /** What was last decided about it, in a sentence; null before that; a server of an earlier version does not say. */
  decision: z.string().nullable().optional(),
});

/** What brings workers to a wrapper's cluster: a pilot, or a job of a class of Python. */
export const WrapPilotView = z.object({
  id: z.string(),
  /** In the workload manager; null while it is being submitted. */
  job: z.string().nullable(),
  /** As for pilots of a server. */
  state: z.string(),
  agents: z.number(),
  /** Workers of it that are connected. */
  workers: z.number(),
  /** What its manager says while it waits, else why it is in this state. */
  reason: z.string().nullable(),
});

/** A Dask cluster that `slipway wrap` holds. */
export const WrapView = z.object({
  id: z.string(),
  /** MODULE::SYMBOL, or CLUSTER/QUEUE. */
  target: z.string(),
  /** The class of the cluster; null before it stands. */
  kind: z.string().nullable(),
  /** Where its pilots come from; null: a class of Python submits jobs. */
  cluster: z.string().nullable(),
  queue: z.string().nullable(),
  /** `lost`: its process is gone without a word; `slipway wrap down` ends what it left. */
  state: z.enum(["starting", "running", "closing", "lost"]),
  statusFile: z.string(),
  host: z.string(),
  pid: z.number(),
  started: z.string(),
  address: z.string().nullable(),
  dashboardPort: z.number().nullable(),
  /** Its URL. */
  dashboard: z.string().nullable(),
  minimum: z.number(),
  maximum: z.number(),
  /** Workers that it has asked for. */
  wanted: z.number(),
  /** Tasks that run or could run; `tasks` has them by state, in Dask's words. */
  work: z.number(),
  tasks: z.record(z.string(), z.number()),
  clients: z.number(),
  /** Of its workers, in bytes; a limit of 0: none is set. */
  memory: z.object({ used: z.number(), limit: z.number() }),
  /** `memory` is the limit. */
  workers: z.array(
    z.object({ name: z.string(), address: z.string(), threads: z.number(), memory: z.number(), used: z.number() }),
  ),
  jobs: z.array(z.object({ id: z.string(), connected: z.boolean(), reason: z.string().nullable() })),
  pilots: z.array(WrapPilotView),
  problem: z.string().nullable(),
  /** Why it has no workers, or no more than these. */
  why: WhyView,
});

export const StatusView = z.object({
  server: ServerView,
  fleets: z.array(FleetView),
  pilots: z.array(PilotView),
  /** The runs that have not ended, and the last few that have. */
  runs: z.array(RunView),
  /** Tasks that are jobs of their own, by queue, where there are any; a server of an earlier version does not say. */
  taskJobs: z.array(TaskJobsView).optional(),
  /** Dask clusters of this home; a server of an earlier version does not say. */
  wraps: z.array(WrapView).optional(),
});

export const EventView = z.object({
  seq: z.number(),
  time: z.string(),
  event: z.string(),
  run: z.number().optional(),
  task: z.string().optional(),
  detail: z.record(z.string(), z.unknown()).optional(),
});

export const ClusterView = z.object({
  name: z.string(),
  type: z.string(),
  default: z.boolean(),
  queues: z.array(z.string()),
  resources: z.record(z.string(), z.number()),
  /** Why it cannot be used, and where its tasks go meanwhile; null: it can; absent: it was not tried yet. */
  problem: z
    .object({ cause: z.string(), remedy: z.string(), since: time, tasks: z.enum(["local", "wait"]) })
    .nullable()
    .optional(),
});

export const CheckView = z.object({
  cluster: z.string(),
  type: z.string(),
  /** Whether nothing is wrong. */
  ok: z.boolean(),
  checks: z.array(
    z.object({
      what: z.string(),
      /** Null: the cluster as a whole. */
      queue: z.string().nullable(),
      ok: z.boolean(),
      detail: z.string(),
      /** What to do; null when all is well. */
      remedy: z.string().nullable(),
    }),
  ),
});

export const SubmitAnswer = z.object({
  run: z.number(),
  total: z.number(),
  /** Of a run that resumes another: tasks that the other has done. */
  skipped: z.number().optional(),
  /** Tasks that run on this machine because the cluster they were meant for cannot be used. */
  redirected: z
    .array(z.object({ cluster: z.string(), tasks: z.number(), cause: z.string() }))
    .readonly()
    .optional(),
  /** What was ignored of what its tasks say to their manager. */
  notices: z.array(z.string()).readonly().optional(),
});
export const CancelAnswer = z.object({ run: z.number(), canceled: z.number(), stopping: z.number() });
export const RetryAnswer = z.object({
  run: z.number(),
  /** Tasks that will run again. */
  reopened: z.number(),
  /** Tasks that were chosen but wait for one that failed and was not: they are cancelled, as before. */
  blocked: z.number().optional(),
});
export const CancelRequest = z.object({
  tasks: z.array(z.number().int()).max(100_000).optional(),
  reason: z.string().max(1000).optional(),
});
/** Without tasks, states and names: `which`. States and names narrow each other down. */
export const RetryRequest = z.object({
  which: z.enum(["failed", "all"]).default("failed"),
  /** By their numbers, whatever their state. */
  tasks: z.array(z.number().int()).min(1).max(100_000).optional(),
  states: z
    .array(z.enum(["DONE", "FAILED", "CANCELED"]))
    .min(1)
    .max(3)
    .optional(),
  /** Names of entries of the run's file. */
  names: z.array(z.string().max(200)).min(1).max(1000).optional(),
  /** Amounts for this retry alone, by the key of a run file: cpus, gpus, mem, tmp, time-limit, time-request, retries, or a resource. */
  set: RetrySetInput.optional(),
});
export const AddPilotsRequest = z.object({
  cluster: z.string().max(200).optional(),
  queue: z.string().max(200).optional(),
  count: z.number().int().min(1).max(1000).default(1),
});
export const PilotRequest = z.object({ reason: z.string().max(1000).optional() });
export const StopRequest = z.object({
  now: z.boolean().default(false),
  /** Only if no run is live and none is being submitted: decided where that is known. */
  idle: z.boolean().default(false),
});

export type RunView = z.infer<typeof RunView>;
export type OutputLostView = z.infer<typeof OutputLostView>;
export type CpuTimeView = z.infer<typeof CpuTimeView>;
export type IoView = z.infer<typeof IoView>;
export type RanksView = z.infer<typeof RanksView>;
export type PeakMemoryView = z.infer<typeof PeakMemoryView>;
export type TaskView = z.infer<typeof TaskView>;
export type AttemptView = z.infer<typeof AttemptView>;
export type EfficiencyView = z.infer<typeof EfficiencyView>;
export type WhyView = z.infer<typeof WhyView>;
export type NamedWhyView = z.infer<typeof NamedWhyView>;
export type ReloadView = z.infer<typeof ReloadView>;
export type ServerView = z.infer<typeof ServerView>;
export type PilotView = z.infer<typeof PilotView>;
export type AgentView = z.infer<typeof AgentView>;
export type FleetView = z.infer<typeof FleetView>;
export type WrapView = z.infer<typeof WrapView>;
export type WrapPilotView = z.infer<typeof WrapPilotView>;
export type StatusView = z.infer<typeof StatusView>;
export type EventView = z.infer<typeof EventView>;
export type CheckView = z.infer<typeof CheckView>;
export type SubmitAnswer = z.infer<typeof SubmitAnswer>;
export type ClusterView = z.infer<typeof ClusterView>;
