import type { QueueConfig } from "../../config/clusters-file.ts";
import type { RunType, SlotType } from "../../config/launch-keys.ts";
import { SlipwayError } from "../../errors.ts";
import type { LaunchDialect, RefuseOption } from "../../managers/launch-dialect.ts";
import { type LaunchManager, MANAGERS } from "../../managers/managers.ts";
import type { Partition } from "../../managers/provider.ts";
import { containerFor, directoriesOf, jobFiles } from "./job-files.ts";
import { jobNameOf, projectOf } from "./job-labels.ts";
import type { LaunchSpec } from "./launch-spec.ts";
import { choosePool, slotTypeOf } from "./pool.ts";
import type { LaunchSettings } from "./settings.ts";

/**
 * A launch, worked out: everything that is written to the job's directory and handed to the workload manager. It
 * depends on its input alone: the same input gives the same bytes.
 */

/** What was found on the cluster before planning. */
export interface LaunchFacts {
  readonly manager: LaunchManager;
  readonly partitions: readonly Partition[];
  /** The answers to the container's preflight questions; see src/containers/. */
  readonly container?: ContainerFacts;
}

export interface ContainerFacts {
  /** What the runtime's `--version` printed; absent: it was not found here, but the nodes may have it. */
  readonly version?: string;
  /** Those of the paths in question that exist, in the order of the questions. */
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
  /** The job's directory, absolute; every node sees it under this path. */
  readonly directory: string;
  /** Shell lines that help the batch script find its manager's programs. */
  readonly searchPath?: readonly string[];
  /**
   * Words before each rank's command that send its output on while it runs. They must start the command whatever
   * happens, pass signals to it and end with its status. The script leaves them out on a node that lacks the first
   * word.
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
  /** Directories to make in the job's directory, in this order, private to the job's user. */
  readonly directories: readonly string[];
  /** Files to write to the job's directory; the batch script is among them. */
  readonly files: readonly PlannedFile[];
  /** The directive lines of the script. */
  readonly directives: readonly string[];
  /** Options of the submit command, before the script. */
  readonly submitOptions: readonly string[];
  /** Seconds, if a limit is asked for. */
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

export interface ChosenPool<Own = unknown> {
  /** As the user or the settings named it; empty: the manager's own default. */
  readonly name: string;
  /** Partition or queue of the manager; absent: its default. */
  readonly partition?: string;
  /** The queue of clusters.yaml that the name stands for. */
  readonly queue?: QueueConfig<Own>;
  /** What is known of the partition. */
  readonly facts?: Partition;
}

export interface Sizing {
  readonly slotType: SlotType;
  /** The number asked for, after rounding. */
  readonly slots: number;
  /** On each node; absent: the manager decides. */
  readonly slotsPerNode?: number;
  readonly nodes: { readonly min: number; readonly max: number };
}

/** Every runtime separates the parts of a bind with `:` and `,`, and each script quotes it once more. */
const DIRECTORY = /^\/[\w/.+@=-]+$/;

const refuseOption =
  (manager: LaunchManager): RefuseOption =>
  ({ entry, option, detail, remedy }) => {
    const key = `${MANAGERS[manager].launch.args}[${entry}]`;
    const facts = { where: "launch", key, remedy };
    if (option === undefined) throw new SlipwayError("bad-value", { ...facts, detail });
    throw new SlipwayError("option-refused", { ...facts, manager, option, detail });
  };

/** Works a launch out. Throws a SlipwayError if it cannot. */
export const planLaunch = (input: PlanInput): LaunchPlan => {
  const { spec, settings, facts, directory } = input;
  const { manager } = facts;
  const dialect: LaunchDialect = MANAGERS[manager].launch;
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
    project: projectOf(dialect, settings, spec),
    ...paths,
    refuse: refuseOption(manager),
  };
  const { prologue, environment } = pool.queue ?? settings;
  const common = { jobName, directory, prologue, environment, searchPath: input.searchPath ?? [] };
  const managed = dialect.job(sizeInput, about, common);

  const container = containerFor(input, slotType);
  const files = jobFiles(input, { jobName, container, script: managed.script });
  return {
    jobName,
    pool,
    sizing: managed.sizing,
    runType: container.runType,
    ...(container.image === undefined ? {} : { image: container.image }),
    paths,
    directories: directoriesOf(files),
    files,
    directives: managed.directives,
    submitOptions: [],
    ...(managed.walltime === undefined ? {} : { walltime: managed.walltime }),
    notes: [...managed.notes, ...container.notes],
  };
};
