import type { QueueConfig } from "../config/clusters-file.ts";
import type { RunType, SlotType } from "../config/launch-keys.ts";
import { imageFor } from "../containers/preflight.ts";
import { RUNTIMES } from "../containers/registry.ts";
import { SlipwayError } from "../errors.ts";
import type { Partition } from "../providers/provider.ts";
import { environmentScript, splitEnvironment } from "./environment-script.ts";
import { jobNameOf, projectOf } from "./job-labels.ts";
import { type JobScriptInput, pbsScript, slurmScript } from "./job-scripts.ts";
import type { LaunchSpec } from "./launch-spec.ts";
import { pbsDirectives } from "./pbs-directives.ts";
import { choosePool, slotTypeOf } from "./pool.ts";
import { enterScript, HOST_PREFIXES, rankScript } from "./rank-scripts.ts";
import type { RefuseOption } from "./sbatch-options.ts";
import type { LaunchSettings } from "./settings.ts";
import { sizeForPbs, sizeForSlurm } from "./sizing.ts";
import { slurmDirectives } from "./slurm-directives.ts";

/**
 * A launch, worked out: everything that is written to the job's directory and handed to the workload manager. It
 * depends on its input alone; the same input gives the same bytes.
 */

export type LaunchManager = "slurm" | "pbs";

/** What was found on the cluster before planning. */
export interface LaunchFacts {
  readonly manager: LaunchManager;
  readonly partitions: readonly Partition[];
  /** What the container's preflight questions were answered; see src/containers/. */
  readonly container?: ContainerFacts;
}

export interface ContainerFacts {
  /** As the runtime's `--version` printed it; absent: it was not found here, the nodes may have it. */
  readonly version?: string;
  /** Those of the asked paths that exist, in the order in which they were asked. */
  readonly images: readonly string[];
}

export interface PlanInput {
  readonly spec: LaunchSpec;
  readonly settings: LaunchSettings;
  /** The queues of the cluster in clusters.yaml. */
  readonly queues: ReadonlyMap<string, QueueConfig>;
  readonly facts: LaunchFacts;
  /** A UUID: with it the job's name is unique for ever. */
  readonly id: string;
  /** The job's directory, absolute, seen under this path by every node. */
  readonly directory: string;
  /** Shell lines with which the batch script finds its manager's programs. */
  readonly searchPath?: readonly string[];
  /**
   * Words before each rank's command that send its output on while it runs. It must start the command whatever happens,
   * pass signals to it and end with its status; left out by the script on a node that lacks its first word.
   */
  readonly streamer?: readonly string[];
  /** Added to each rank's environment, such as the streamer's address and token; never shown on a command line. */
  readonly streamerEnv?: Readonly<Record<string, string>>;
}

export interface LaunchPlan {
  readonly jobName: string;
  readonly pool: ChosenPool;
  readonly sizing: Sizing;
  readonly runType: RunType;
  /** What the container runs from: a path, or a reference that the nodes resolve. Absent without a container. */
  readonly image?: string;
  /** Where things are, absolute. */
  readonly paths: {
    readonly directory: string;
    readonly script: string;
    readonly stdout: string;
    readonly stderr: string;
    /** The batch script's last act: the job's exit status, a number and a line break. */
    readonly exitCode: string;
    /** The manager's id of the job, written when it starts. */
    readonly nativeId: string;
  };
  /** To be made in the directory, in this order, private to the job's user. */
  readonly directories: readonly string[];
  /** To be written in the directory; the batch script is among them. */
  readonly files: readonly PlannedFile[];
  /** The directive lines of the script. */
  readonly directives: readonly string[];
  /** Options of the submitting command, before the script. */
  readonly submitOptions: readonly string[];
  /** Seconds, where a limit is asked for. */
  readonly walltime?: number;
  /** What was rounded, replaced or assumed, for people. */
  readonly notes: readonly string[];
}

export interface PlannedFile {
  /** Relative to the directory. */
  readonly path: string;
  readonly content: string;
  readonly encoding: "utf8" | "base64";
  readonly mode: number;
}

export interface ChosenPool {
  /** As the user or the settings named it; empty: the manager's own default. */
  readonly name: string;
  /** Partition or queue of the manager; absent: its default. */
  readonly partition?: string;
  /** The queue of clusters.yaml that the name stands for. */
  readonly queue?: QueueConfig;
  /** What is known of the partition. */
  readonly facts?: Partition;
}

export interface Sizing {
  readonly slotType: SlotType;
  /** As they are asked for, after rounding. */
  readonly slots: number;
  /** Of each node; absent: the manager decides. */
  readonly slotsPerNode?: number;
  readonly nodes: { readonly min: number; readonly max: number };
}

/** Every runtime separates the parts of a bind with `:` and `,`, and each script quotes it once more. */
const DIRECTORY = /^\/[\w/.+@=-]+$/;

const refuseOption =
  (manager: LaunchManager): RefuseOption =>
  ({ entry, option, detail, remedy }) => {
    const key = `${manager === "slurm" ? "slurm.sbatch_args" : "pbs.pbsbatch_args"}[${entry}]`;
    const facts = { where: "launch", key, remedy };
    if (option === undefined) throw new SlipwayError("bad-value", { ...facts, detail });
    throw new SlipwayError("option-refused", { ...facts, manager, option, detail });
  };

/** Works a launch out. Throws a SlipwayError where it cannot be. */
export const planLaunch = (input: PlanInput): LaunchPlan => {
  const { spec, settings, facts, directory } = input;
  const { manager } = facts;
  if (!DIRECTORY.test(directory)) {
    throw new SlipwayError("bad-value", {
      where: "clusters.yaml",
      key: "job_storage_root",
      detail: `${directory} cannot be bound into containers`,
      remedy: "Choose a path of letters, digits and / . _ + @ = -",
    });
  }
  const pool = choosePool({ spec, settings, queues: input.queues, partitions: facts.partitions });
  const slotType = slotTypeOf(spec, settings, pool);
  const own = spec[manager];
  const sizeInput = {
    slots: spec.slots,
    slotType,
    slotsPerNode: own.slotsPerNode,
    gpuType: spec.slurm.gpuType,
    tresSupported: settings.tresSupported,
    gresSupported: settings.gresSupported,
    gpusPerNode: pool.facts?.gpusPerNode ?? 0,
  };
  const at = (name: string): string => `${directory}/${name}`;
  const paths = {
    directory,
    script: at("job.sh"),
    stdout: at("output.log"),
    stderr: at("error.log"),
    exitCode: at("exit-code"),
    nativeId: at("native-id"),
  };
  const jobName = jobNameOf(settings, spec, input.id);
  const about = {
    spec,
    pool,
    jobName,
    project: projectOf(manager, settings, spec),
    ...paths,
    refuse: refuseOption(manager),
  };
  const { prologue, environment } = pool.queue ?? settings;
  const common = { jobName, directory, prologue, environment, searchPath: input.searchPath ?? [] };
  const managed =
    manager === "slurm"
      ? forSlurm(sizeForSlurm(sizeInput), about, common)
      : forPbs(sizeForPbs(sizeInput), about, common);

  const runType = spec.image === undefined ? "none" : (spec.runType ?? settings.runType);
  const image = spec.image === undefined || runType === "none" ? undefined : spec.image;
  const found =
    image === undefined ? undefined : imageFor(runType, image, settings.imageRoot, facts.container?.images ?? []);
  const container = RUNTIMES[image === undefined ? "none" : runType]({
    image: found?.image ?? "",
    binds: spec.binds,
    slotType: spec.slots === 0 ? "cpu" : slotType,
    inherit: spec.inherit,
    name: `slipway-${input.id}`,
    version: facts.container?.version,
  });
  const imageNotes =
    found === undefined || found.prepared || runType === "podman"
      ? []
      : [`no prepared image was found for ${image}: each node resolves ${found.image} itself`];
  const { streamer = [], streamerEnv = {} } = spec.streamLogs ? input : {};
  const hostEnv = Object.fromEntries(
    Object.entries(spec.env).filter(([name]) => HOST_PREFIXES.some((prefix) => name.startsWith(prefix))),
  );
  const hasHostEnv = Object.keys(hostEnv).length > 0;
  const hasStreamEnv = Object.keys(streamerEnv).length > 0;
  const rank = rankScript({
    manager,
    jobName,
    directory,
    container,
    hasContainer: image !== undefined,
    streamer,
    hasHostEnv,
    hasStreamEnv,
  });
  const { plain, special } = splitEnvironment(spec.env);
  const enter = enterScript({
    command: spec.command,
    special,
    cwd: spec.cwd,
    hasHook: spec.startupHook !== undefined,
    hidden: streamer.length === 0 ? [] : [...Object.keys(streamerEnv), "SLIPWAY_STREAM_RANK"],
  });
  const text = (path: string, content: string, mode: number): PlannedFile => ({
    path,
    content,
    encoding: "utf8",
    mode,
  });
  const files: PlannedFile[] = [
    text("job.sh", managed.script, 0o755),
    text("rank.sh", rank, 0o755),
    text("enter.sh", enter, 0o755),
    text("environment.sh", environmentScript(plain), 0o600),
    ...(hasHostEnv ? [text("host-environment.sh", environmentScript(hostEnv), 0o600)] : []),
    ...(hasStreamEnv ? [text("stream.sh", environmentScript(streamerEnv), 0o600)] : []),
    ...(spec.startupHook === undefined ? [] : [text("startup-hook.sh", spec.startupHook, 0o755)]),
    ...spec.files.map(({ path, content, encoding, executable }): PlannedFile => ({
      path: `files/${path}`,
      content,
      encoding,
      mode: executable ? 0o755 : 0o644,
    })),
  ];
  return {
    jobName,
    pool,
    sizing: managed.sizing,
    runType: image === undefined ? "none" : runType,
    ...(found === undefined ? {} : { image: found.image }),
    paths,
    directories: directoriesOf(files),
    files,
    directives: managed.directives,
    submitOptions: [],
    ...(managed.walltime === undefined ? {} : { walltime: managed.walltime }),
    notes: [...managed.notes, ...container.notes, ...imageNotes],
  };
};

/** Parents before children. */
const directoriesOf = (files: readonly PlannedFile[]): string[] => {
  const all = new Set(["files", "ranks"]);
  for (const { path } of files) {
    const parts = path.split("/").slice(0, -1);
    for (let depth = 1; depth <= parts.length; depth++) all.add(parts.slice(0, depth).join("/"));
  }
  return [...all];
};

interface Managed {
  readonly sizing: Sizing;
  readonly script: string;
  readonly directives: readonly string[];
  readonly walltime?: number;
  readonly notes: readonly string[];
}

type Common = Omit<JobScriptInput, "directives" | "each" | "linesPerChunk">;

const forSlurm = (
  sized: ReturnType<typeof sizeForSlurm>,
  about: Parameters<typeof slurmDirectives>[0],
  common: Common,
): Managed => {
  const { lines, notes, ...rest } = slurmDirectives(about, sized);
  const script = slurmScript({ ...common, directives: lines, each: sized.sizing.slotsPerNode, linesPerChunk: 1 });
  return { ...rest, sizing: sized.sizing, script, directives: lines, notes: [...sized.notes, ...notes] };
};

const forPbs = (
  sized: ReturnType<typeof sizeForPbs>,
  about: Parameters<typeof pbsDirectives>[0],
  common: Common,
): Managed => {
  const { lines, notes, linesPerChunk, isScattered, ...rest } = pbsDirectives(about, sized);
  const script = pbsScript({ ...common, directives: lines, each: sized.each, linesPerChunk });
  const { chunks, each } = sized;
  const sizing = isScattered
    ? { ...sized.sizing, slotsPerNode: each, nodes: { min: chunks, max: chunks } }
    : sized.sizing;
  return { ...rest, sizing, script, directives: lines, notes: [...sized.notes, ...notes] };
};
