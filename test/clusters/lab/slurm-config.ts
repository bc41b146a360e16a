import { hostname } from "node:os";

/** What a booted Slurm consists of. */
export interface SlurmLabOptions {
  /** Nodes of the partitions batch (the default), high and short. */
  readonly nodes?: number;
  /** Per node. May exceed what the machine has, except with `cgroups`. */
  readonly cpus?: number;
  readonly memoryMb?: number;
  /** Devices by type, per node. */
  readonly gpus?: Readonly<Record<string, number>>;
  /** Nodes of the partition big: twice the CPUs, memory and GPUs of the others. */
  readonly bigNodes?: number;
  /** Nodes of the partition plain: no GPUs. */
  readonly plainNodes?: number;
  /** With slurmdbd and a database: sacct, accounts, QOS (normal, low, urgent) and enforced limits. */
  readonly accounting?: boolean;
  /** Known to the accounting; without these it accepts any. */
  readonly wckeys?: readonly string[];
  /** Accounts of this machine that exist while the cluster does; members of the account proj if there is accounting. */
  readonly users?: readonly string[];
  /** proctrack/cgroup, task/cgroup and task/affinity: `scancel` also ends what left the job's session. */
  readonly cgroups?: boolean;
  /**
   * Nodes that are separate from each other and from this machine, as on a real site: each has its own network and its
   * own /tmp; what they share is mounted at `shared`.
   */
  readonly apart?: boolean;
  /** Seconds of silence after which a node is down. Small only for tests that kill nodes: a busy machine is silent too. */
  readonly nodeTimeout?: number;
  /** By partition (high over batch), or by QOS (urgent over low) with accounting. */
  readonly preemption?: boolean;
  /** How long a job that has ended is still shown. */
  readonly minJobAge?: number;
  /** Seconds between the polite and the hard signal. */
  readonly killWait?: number;
  /** How many seconds a credential lives; a requeued job waits that long. */
  readonly credentialSeconds?: number;
  /** Lines at the end of slurm.conf. */
  readonly extra?: readonly string[];
}

export interface LabNode {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly gpus: Readonly<Record<string, number>>;
  readonly kind: "common" | "big" | "plain";
}

export interface LabPlan {
  readonly root: string;
  readonly options: SlurmLabOptions;
  /** Where nodes find the controller. */
  readonly address: string;
  readonly nodes: readonly LabNode[];
  readonly ports: { readonly controller: number; readonly accounting: number; readonly database: number };
}

/** Of each node, as far as Slurm is told: nobody measures it. */
const TMP_DISK_MB = 20_000;

/** One NodeName line for each node: ports and sizes need not be consecutive. */
const nodeLine = (node: LabNode): string => {
  const gpus = Object.entries(node.gpus).map(([type, count]) => `gpu:${type}:${count}`);
  return [
    `NodeName=${node.name} NodeHostname=${hostname()} NodeAddr=${node.address} Port=${node.port}`,
    `CPUs=${node.cpus} RealMemory=${node.memoryMb} TmpDisk=${TMP_DISK_MB} Feature=${node.kind},${Object.keys(node.gpus).join(",") || "nogpu"}`,
    ...(gpus.length === 0 ? [] : [`Gres=${gpus.join(",")}`]),
    "State=UNKNOWN",
  ].join(" ");
};

const partitionLines = (nodes: readonly LabNode[]): string[] => {
  const named = (kind: LabNode["kind"]): string =>
    nodes
      .filter((node) => node.kind === kind)
      .map(({ name }) => name)
      .join(",");
  const common = named("common");
  return [
    "PartitionName=DEFAULT MaxTime=INFINITE State=UP",
    `PartitionName=batch Nodes=${common} Default=YES PriorityTier=1`,
    `PartitionName=high Nodes=${common} PriorityTier=10`,
    `PartitionName=short Nodes=${common} MaxTime=00:10:00 DefaultTime=00:01:00`,
    ...(named("big") === "" ? [] : [`PartitionName=big Nodes=${named("big")} MaxTime=1-12:00:00`]),
    ...(named("plain") === "" ? [] : [`PartitionName=plain Nodes=${named("plain")}`]),
  ];
};

const accountingLines = ({ root, options, ports }: LabPlan): string[] =>
  options.accounting === true
    ? [
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        `AccountingStoragePort=${ports.accounting}`,
        `AccountingStoragePass=${root}/munge/socket`,
        "AccountingStorageEnforce=associations,limits,qos,wckeys",
        "AccountingStorageTRES=gres/gpu",
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=task=1",
      ]
    : ["AccountingStorageType=accounting_storage/none", "JobAcctGatherType=jobacct_gather/none"];

const preemptionLines = ({ preemption, accounting }: SlurmLabOptions): string[] =>
  preemption === true
    ? [`PreemptType=preempt/${accounting === true ? "qos" : "partition_prio"}`, "PreemptMode=REQUEUE"]
    : ["PreemptType=preempt/none"];

/** Timers that would declare a busy machine broken are long; those that only cost time are short. */
export const slurmConf = (plan: LabPlan): string => {
  const { root, options, address, nodes, ports } = plan;
  const nodeTimeout = options.nodeTimeout ?? 60;
  return [
    "ClusterName=lab",
    `SlurmctldHost=${hostname()}(${address})`,
    `SlurmctldPort=${ports.controller}`,
    "AuthType=auth/munge",
    "CredType=cred/munge",
    `AuthInfo=socket=${root}/munge/socket,cred_expire=${options.credentialSeconds ?? 60}`,
    "SlurmUser=root",
    "SlurmdUser=root",
    `StateSaveLocation=${root}/state`,
    `SlurmdSpoolDir=${root}/spool/%n`,
    `SlurmctldPidFile=${root}/slurmctld.pid`,
    `SlurmdPidFile=${root}/slurmd-%n.pid`,
    `SlurmctldLogFile=${root}/log/slurmctld.log`,
    `SlurmdLogFile=${root}/log/slurmd-%n.log`,
    `ProctrackType=proctrack/${options.cgroups === true ? "cgroup" : "linuxproc"}`,
    `TaskPlugin=${options.cgroups === true ? "task/cgroup,task/affinity" : "task/none"}`,
    "MpiDefault=none",
    "SwitchType=switch/none",
    "TrackWCKey=yes",
    ...accountingLines(plan),
    "SchedulerType=sched/backfill",
    "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1,bf_resolution=1,bf_yield_interval=1000000",
    "SelectType=select/cons_tres",
    "SelectTypeParameters=CR_CPU_Memory",
    "PriorityType=priority/multifactor",
    "PriorityWeightQOS=10000",
    "PriorityWeightPartition=1000",
    "PriorityWeightAge=100",
    ...preemptionLines(options),
    "SlurmctldTimeout=60",
    `SlurmdTimeout=${nodeTimeout}`,
    "InactiveLimit=0",
    `KillWait=${options.killWait ?? 5}`,
    `MinJobAge=${options.minJobAge ?? 300}`,
    "MaxJobCount=20000",
    // also how long a command waits for a controller that is gone
    `MessageTimeout=${Math.min(20, Math.max(5, nodeTimeout))}`,
    "TCPTimeout=5",
    "BatchStartTimeout=60",
    "OverTimeLimit=0",
    "ReturnToService=1",
    "JobRequeue=1",
    // more CPUs and memory than the machine has
    "SlurmdParameters=config_overrides",
    "DefMemPerCPU=100",
    "GresTypes=gpu",
    "Licenses=foo:4,bar:10",
    ...nodes.map(nodeLine),
    ...partitionLines(nodes),
    ...(options.extra ?? []),
    "",
  ].join("\n");
};

/** GPUs are devices that exist: a bare count is silently dropped. Their files are `dev/TYPE-INDEX`. */
export const gresConf = ({ root, nodes }: LabPlan): string =>
  nodes
    .flatMap((node) =>
      Object.entries(node.gpus).map(
        ([type, count]) =>
          `NodeName=${node.name} Name=gpu Type=${type} File=${root}/dev/${type}-[0-${Math.max(0, count - 1)}]\n`,
      ),
    )
    .join("");

/** Read only with `cgroups`: jobs get the cores and the memory they asked for, and no more. */
export const cgroupConf = [
  "CgroupPlugin=cgroup/v1",
  "CgroupMountpoint=/sys/fs/cgroup",
  "CgroupAutomount=no",
  "ConstrainCores=yes",
  "ConstrainRAMSpace=yes",
  "ConstrainSwapSpace=yes",
  "AllowedSwapSpace=0",
  "",
].join("\n");

export const slurmdbdConf = ({ root, ports }: LabPlan): string =>
  [
    "AuthType=auth/munge",
    `AuthInfo=socket=${root}/munge/socket`,
    `DbdHost=${hostname()}`,
    "DbdAddr=127.0.0.1",
    `DbdPort=${ports.accounting}`,
    "SlurmUser=root",
    `PidFile=${root}/slurmdbd.pid`,
    `LogFile=${root}/log/slurmdbd.log`,
    "StorageType=accounting_storage/mysql",
    "StorageHost=127.0.0.1",
    `StoragePort=${ports.database}`,
    "StorageUser=slurm",
    "StoragePass=slurm",
    "StorageLoc=slurm_acct_db",
    "TrackWCKey=yes",
    "",
  ].join("\n");
