import type { ClusterConfig } from "../../config/clusters-file.ts";
import type { ProjectSource, RunType, SlotType } from "../../config/launch-keys.ts";

/** How jobs are launched on one cluster: what clusters.yaml says, and the defaults for the rest. */
export interface LaunchSettings {
  /** Absent: cuda where the partition has GPUs, otherwise cpu. */
  readonly slotType?: SlotType;
  /** Slurm: `SelectType=select/cons_tres`, so that `--gpus` is understood. */
  readonly tresSupported: boolean;
  /** Slurm: `GresTypes=gpu`; PBS: nodes have `ngpus`. */
  readonly gresSupported: boolean;
  /** Absent: the manager's default partition. */
  readonly defaultAuxPool?: string;
  /** Absent: the manager's default partition, if it has GPUs. */
  readonly defaultComputePool?: string;
  readonly projectSource: ProjectSource;
  /** Where job directories are made; seen by every node. Absent: chosen by the server. */
  readonly storageRoot?: string;
  readonly runType: RunType;
  readonly imageRoot?: string;
  /** A Runas_List of sudoers; root is always excluded. */
  readonly sudoAuthorized: readonly string[];
  readonly partitionOverrides: Readonly<Record<string, { readonly slotType?: SlotType }>>;
  readonly jobNamePrefix: string;
  /** Shell lines and variables for jobs in a partition that no queue of clusters.yaml names. */
  readonly prologue: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Seconds that a finished job's directory is kept. */
  readonly retention: number;
}

export const LAUNCH_DEFAULTS: LaunchSettings = {
  tresSupported: true,
  gresSupported: true,
  projectSource: { from: "project" },
  runType: "singularity",
  sudoAuthorized: ["ALL"],
  partitionOverrides: {},
  jobNamePrefix: "slipway",
  prologue: [],
  environment: {},
  retention: 0,
};

export const settingsOf = ({ launch }: ClusterConfig): LaunchSettings => {
  const written = {
    slotType: launch.slot_type,
    tresSupported: launch.tres_supported,
    gresSupported: launch.gres_supported,
    defaultAuxPool: launch.default_aux_resource_pool,
    defaultComputePool: launch.default_compute_resource_pool,
    projectSource: launch.job_project_source,
    storageRoot: launch.job_storage_root,
    runType: launch.container_run_type,
    imageRoot: launch.image_root ?? launch.apptainer_image_root ?? launch.singularity_image_root,
    sudoAuthorized: launch.sudo_authorized,
    partitionOverrides: launch.partition_overrides,
    jobNamePrefix: launch.jobNamePrefix,
    prologue: launch.prologue,
    environment: launch.environment,
    retention: launch.job_retention,
  };
  return {
    ...LAUNCH_DEFAULTS,
    ...Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined)),
  };
};
