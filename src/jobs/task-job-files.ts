import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClusterConfig, QueueConfig } from "../config/clusters-file.ts";
import type { TaskJobId } from "../core/ids.ts";
import type { Lifetime } from "../core/lifetime.ts";
import { fromUnits, type Resources } from "../core/resources.ts";
import type { RankSpec } from "../core/spec.ts";
import type { Batch } from "../managers/manager.ts";
import { AGENT_SCRIPT, BEFORE_FILE, HOSTS_FILE, pilotScripts } from "../managers/pilot-script.ts";
import type { JobRequest } from "../managers/provider.ts";
import type { TaskAsk, TaskDialect } from "../managers/task-dialect.ts";
import { BUNDLE_MARK } from "../pilots/bundle.ts";
import { type AgentSettings, type OwnRanks, agentSettings } from "../protocol/agent-settings.ts";
import { PATIENCE, walltimeOf, wholeOf } from "./task-queue.ts";

/**
 * Makes the job of a task, or an array of such jobs, for a workload manager: its script, and the settings of the agent
 * that runs the task on the first node, all in the job's own directory. Only this user can read the settings.
 */

export const TASK_STDOUT = "stdout";
export const TASK_STDERR = "stderr";
const SCRIPT = "job.sh";
const SETTINGS = "settings.json";

/** Before the manager ends the job by force, in seconds. */
const LAST_WORDS = 15;

export interface TaskJobOptions {
  readonly home: string;
  readonly cluster: ClusterConfig;
  readonly queue: QueueConfig;
  readonly batch: Batch;
  readonly dialect: TaskDialect;
  /** The name of the bundle, placed when first asked for. */
  readonly bundle: () => Promise<string>;
  /** Names that the manager itself counts for the whole cluster. */
  readonly licences: ReadonlySet<string>;
}

export interface TaskJobAsk {
  readonly id: TaskJobId;
  readonly jobName: string;
  /** Exists, and is its own. */
  readonly directory: string;
  /** In units; with ranks, those of each. */
  readonly resources: Resources;
  readonly ranks?: RankSpec | undefined;
  /** As the dialect read them. */
  readonly keys: Readonly<Record<string, string>>;
  /** Seconds. */
  readonly timeLimit?: number | undefined;
  /** How many tasks it carries; more than one are an array. */
  readonly elements: number;
  readonly nice?: number | undefined;
}

const OWN_FIELDS = new Set(["cpus", "gpus", "mem", "tmp"]);

/** What the task asks of its manager; what it says itself goes before what the queue says. */
const askOf = ({ queue, licences }: TaskJobOptions, job: TaskJobAsk): TaskAsk => {
  const { resources, ranks, timeLimit, directory } = job;
  // the size of a queue is that of its pilots
  const { cores: _cores, memory: _memory, gpus: _gpus, tmp: _tmp, walltime: ofQueue, ...others } = queue;
  const amount = (name: string, key: "cores" | "memory" | "gpus" | "tmp"): Partial<TaskAsk> => {
    const units = resources[name] ?? 0;
    return units === 0 ? {} : { [key]: fromUnits(name, units) };
  };
  const walltime = walltimeOf(timeLimit, ofQueue);
  return {
    ...others,
    ...amount("cpus", "cores"),
    ...amount("mem", "memory"),
    ...amount("gpus", "gpus"),
    ...amount("tmp", "tmp"),
    ...(walltime === undefined ? {} : { walltime }),
    name: job.jobName,
    stdout: join(directory, TASK_STDOUT),
    stderr: join(directory, TASK_STDERR),
    nodes: ranks?.nodes ?? 1,
    keys: job.keys,
    others: Object.fromEntries(Object.entries(resources).filter(([name]) => !OWN_FIELDS.has(name))),
    licences,
    ...(ranks === undefined ? {} : { ranks }),
    ...(job.elements > 1 ? { array: job.elements } : {}),
    ...(job.nice === undefined ? {} : { nice: job.nice }),
  };
};

/** Where nothing but the queue's walltime ends the task: it gets the queue's signal, and its end is a time limit. */
const lifetimeOf = (
  { walltime, signal, signalBefore }: QueueConfig,
  { timeLimit }: TaskJobAsk,
): Lifetime | undefined => {
  if (timeLimit !== undefined || walltime === undefined) return undefined;
  const end = walltime - Math.min(LAST_WORDS, walltime / 12);
  const endMs = Math.round(end * 1000);
  return { drainMs: endMs, signalMs: Math.round((end - Math.min(signalBefore, walltime / 4)) * 1000), endMs, signal };
};

const LAUNCHERS: Readonly<Record<string, OwnRanks["by"]>> = {
  srun: "srun",
  "srun-mpi": "srun",
  mpiexec: "mpiexec",
  mpirun: "mpiexec",
};

/** What starts its ranks: the queue's launcher if it can, else the manager's own. */
const ranksOf = ({ cluster, queue, batch, dialect }: TaskJobOptions, job: TaskJobAsk): OwnRanks | undefined => {
  if (job.ranks === undefined) return undefined;
  const { launcher } = queue;
  const ofQueue = launcher === undefined ? undefined : LAUNCHERS[launcher.name];
  const by = ofQueue ?? dialect.ranks;
  const own = cluster.bin === undefined ? undefined : batch.ownStarters?.[by];
  const program =
    (ofQueue === undefined ? undefined : launcher?.program) ??
    (own === undefined ? undefined : join(cluster.bin!, own));
  return { by, ...(program === undefined ? {} : { program }), hostsFile: join(job.directory, HOSTS_FILE) };
};

const settingsOf = (options: TaskJobOptions, job: TaskJobAsk): AgentSettings => {
  const { home, cluster, queue, dialect } = options;
  const ranks = ranksOf(options, job);
  const lifetime = lifetimeOf(queue, job);
  return agentSettings({
    home,
    pilot: 0,
    cluster: cluster.name,
    queue: queue.name,
    scratch: queue.scratch ?? "$TMPDIR",
    declared: wholeOf({ resources: job.resources, ranks: job.ranks }),
    graceMs: cluster.grace * 1000,
    pin: cluster.pin,
    ...PATIENCE,
    executor: cluster.executor,
    environmentFile: join(job.directory, BEFORE_FILE),
    taskJob: { id: job.id, element: 0 },
    variables: dialect.variables.source,
    ...(lifetime === undefined ? {} : { lifetime }),
    ...(ranks === undefined ? {} : { ranks }),
  });
};

export const prepareTaskJob = async (options: TaskJobOptions, job: TaskJobAsk): Promise<JobRequest> => {
  const { home, cluster, queue, batch, dialect } = options;
  const { directory, jobName } = job;
  const bundle = await options.bundle();
  const ask = askOf(options, job);
  const directives = dialect.directives(ask);
  const what = job.elements > 1 ? `${job.elements} tasks` : "a task";
  const { prefix = [], workingDirectory } = queue.launcher ?? {};
  const { script, agentScript } = pilotScripts({
    title: `job ${job.id} of ${what} on ${cluster.name}/${queue.name}, made by Slipway`,
    shebang: queue.shebang ?? "#!/bin/bash",
    directives,
    environment: queue.environment,
    prologue: queue.prologue,
    epilogue: queue.epilogue,
    starter: { name: "single", overrides: [], prefix, ...(workingDirectory === undefined ? {} : { workingDirectory }) },
    bin: cluster.bin,
    job: batch.job,
    nodes: 1,
    parts: 1,
    directory,
    node: queue.node ?? process.execPath,
    agent: [join(home, "bundles", bundle, "agent-quick.cjs"), "--settings-file", join(directory, SETTINGS)],
    hostCpus: job.ranks === undefined ? undefined : batch.hostCpus(ask, directives, "single"),
    task: { array: job.elements > 1 ? dialect.array : undefined, ranks: job.ranks !== undefined },
  });
  const settings = `${JSON.stringify(settingsOf(options, job))}\n`;
  await Promise.all([
    writeFile(join(directory, SETTINGS), settings, { mode: 0o600 }),
    writeFile(join(directory, BUNDLE_MARK), `${bundle}\n`, { mode: 0o600 }),
    writeFile(join(directory, AGENT_SCRIPT), agentScript, { mode: 0o700 }),
    // OAR starts the script itself: it must be executable
    writeFile(join(directory, SCRIPT), script, { mode: 0o700 }),
  ]);
  return {
    name: jobName,
    directory,
    command: ["/bin/sh", join(directory, AGENT_SCRIPT)],
    script: join(directory, SCRIPT),
    ...(job.elements > 1 ? { array: job.elements } : {}),
  };
};
