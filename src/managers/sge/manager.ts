import { directory, name, pickKeys, type Values } from "../../config/key-table.ts";
import { counted, isAlone } from "../host-cpus.ts";
import { type Manager, given, variables } from "../manager.ts";
import { sgeDirectives } from "./directives.ts";
import { SGE_ALIASES, SGE_KEYS, sgeProblem, type SgeQueue } from "./keys.ts";
import { sgeTask } from "./task.ts";
import { SGE_WAITING } from "./waiting-reasons.ts";

const CLUSTER_KEYS = { root: directory(), cell: name, cluster: name } as const;

/** SGE_ROOT, SGE_CELL and SGE_CLUSTER_NAME, where they are not in the environment already. */
export type SgeCluster = Values<typeof CLUSTER_KEYS>;

export const sge = {
  title: "Grid Engine",
  keys: SGE_KEYS,
  aliases: SGE_ALIASES,
  clusterKeys: CLUSTER_KEYS,
  understands: ["reservation", "bin"],
  instead: {
    constraint: "Use hard: [NAME=VALUE].",
    gres: "Use gpus with gpu-resource, or hard.",
    property: "Use hard: [NAME=VALUE].",
  },
  queue: (values) => pickKeys(SGE_KEYS, values),
  cluster: (values) => pickKeys(CLUSTER_KEYS, values),
  problem: (job) => sgeProblem(job),
  batch: {
    partition: "queue",
    choosesPartition: true,
    programs: ["qsub", "qstat", "qdel", "qhost", "qconf"],
    further: [],
    configuration: ({ own: { root, cell } }, env) =>
      given(root ?? env["SGE_ROOT"]).map((path) => `${path}/${cell ?? env["SGE_CELL"] ?? "default"}/common`),
    unconfigured: /set the environment variable SGE_ROOT|cell directory .* doesn't exist/i,
    environment: ({ own: { root, cell, cluster } }) =>
      variables({ SGE_ROOT: root, SGE_CELL: cell, SGE_CLUSTER_NAME: cluster }),
    directives: sgeDirectives,
    job: {
      // without a parallel environment there is no file
      hosts: () =>
        `awk '!seen[$1]++ { print $1 } END { if (NR == 0) system("hostname") }' "\${PE_HOSTFILE:-/dev/null}"`,
      programs: "$SGE_BINARY_PATH",
    },
    hostCpus: (ask, directives) =>
      isAlone(ask, directives) || ask.own.cpuResource != null ? undefined : counted("$2", "${PE_HOSTFILE:-/dev/null}"),
    starter: "qrsh",
    task: sgeTask,
    waiting: SGE_WAITING,
  },
} satisfies Manager<SgeQueue, SgeCluster>;
