import { flag, line, pickKeys, type Values } from "../../config/key-table.ts";
import { type Manager, given, variables } from "../manager.ts";
import { slurmDirectives } from "./directives.ts";
import { slurmHostCpus } from "./host-cpus.ts";
import { SLURM_ALIASES, SLURM_KEYS, SLURM_SUGGESTED, slurmQueue, type SlurmQueue } from "./keys.ts";
import { slurmLaunch } from "./launch.ts";
import { slurmTask } from "./task.ts";
import { SLURM_WAITING } from "./waiting-reasons.ts";

const CLUSTER_KEYS = { "use-nice": flag, "lib-slurm": line } as const;

/** `useNice`: waiting jobs of tasks are ordered by their nice values. */
export type SlurmCluster = Values<typeof CLUSTER_KEYS>;

export const slurm = {
  title: "Slurm",
  keys: SLURM_KEYS,
  aliases: SLURM_ALIASES,
  suggested: SLURM_SUGGESTED,
  clusterKeys: CLUSTER_KEYS,
  understands: ["qos", "constraint", "reservation", "bin", "config"],
  instead: {
    place: "Use exclusive: true, or options.",
    hard: "Use constraint, gres or options.",
    property: "Use constraint.",
  },
  queue: slurmQueue,
  cluster: (values) => pickKeys(CLUSTER_KEYS, values),
  notices: ({ libSlurm }) =>
    libSlurm === undefined ? [] : ["lib-slurm is not needed: Slipway speaks to Slurm by its commands"],
  parts: ({ parts }) => parts?.length ?? 1,
  batch: {
    partition: "partition",
    choosesPartition: false,
    programs: ["sbatch", "squeue", "scancel", "sinfo"],
    further: ["sacct", "scontrol", "srun"],
    configuration: ({ config }, env) => given(config ?? env["SLURM_CONF"]),
    unconfigured: /could not establish a configuration source/i,
    environment: ({ config }) => variables({ SLURM_CONF: config }),
    directives: slurmDirectives,
    job: { hosts: (program) => `${program("scontrol")} show hostnames "$SLURM_JOB_NODELIST"` },
    hostCpus: slurmHostCpus,
    starter: "srun",
    ownStarters: { srun: "srun", "srun-mpi": "srun" },
    task: slurmTask,
    waiting: SLURM_WAITING,
  },
  launch: slurmLaunch,
} satisfies Manager<SlurmQueue, SlurmCluster>;
