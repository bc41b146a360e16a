import { FRACTION } from "../../core/resources.ts";
import type { Ranks } from "../../protocol/messages.ts";

/** What ranks learn about each other, and the command lines of launchers that start them all. Pure. */

/** A port at which the ranks of a task may meet; tasks that share a host most likely get different ones. */
const meetingPort = ({ run, row, attempt }: Ranks): number => 20_000 + ((run * 7919 + row * 131 + attempt) % 20_000);

/** The number of the first rank on each host. */
export const firstRanks = (ranks: readonly number[]): number[] => {
  let next = 0;
  return ranks.map((count) => {
    next += count;
    return next - count;
  });
};

/** What a launcher passes on to all ranks. */
export const sharedEnvironment = (part: Ranks): string[] => {
  const total = part.ranks.reduce((sum, count) => sum + count, 0);
  return [
    `SLIPWAY_RANKS=${total}`,
    `SLIPWAY_NODES=${part.hosts.length}`,
    `SLIPWAY_HOSTS=${part.hosts.join(",")}`,
    `SLIPWAY_RANKS_PER_HOST=${part.ranks.join(",")}`,
  ];
};

/** For a rank that its agent starts: also under the names that PyTorch and its kin look for. */
export const rankEnvironment = (part: Ranks, local: number): string[] => {
  const number = firstRanks(part.ranks)[part.node]! + local;
  const total = part.ranks.reduce((sum, count) => sum + count, 0);
  return [
    ...sharedEnvironment(part),
    `SLIPWAY_RANK=${number}`,
    `SLIPWAY_LOCAL_RANK=${local}`,
    `SLIPWAY_LOCAL_RANKS=${part.ranks[part.node]}`,
    `SLIPWAY_NODE_RANK=${part.node}`,
    `RANK=${number}`,
    `WORLD_SIZE=${total}`,
    `LOCAL_RANK=${local}`,
    `LOCAL_WORLD_SIZE=${part.ranks[part.node]}`,
    `MASTER_ADDR=${part.hosts[0]}`,
    `MASTER_PORT=${meetingPort(part)}`,
  ];
};

/** One line for each rank: the one form of a host file that all launchers read alike. */
export const hostFile = ({ hosts, ranks }: Ranks): string =>
  hosts.map((host, i) => `${host}\n`.repeat(ranks[i]!)).join("");

/** Variables of the job that a launcher inside it needs; those of the agent's own step would mislead it. */
const OF_THE_JOB =
  /^(SLURM_(CONF|JOB_?ID|CLUSTER_NAME|JOB_UID|JOB_USER|JOB_PARTITION)|PBS_|PE_|SGE_|JOB_ID|OAR_|TMPDIR_JOB$)/;

/** Open MPI starts its daemons through the manager; it must neither share the agent's step nor count its slots. */
const OPEN_MPI_IN_SLURM = "--overlap --cpu-bind=none --mem=0 --export=ALL";

/**
 * What Open MPI needs in a Slurm job. It does not pass the hosts that it reads from a file on to srun: without a list
 * its daemons, one on each host but the first, start on the first nodes of the job, whichever hosts they are meant for.
 * Slurm numbers them in its own order of nodes, whatever the order of the list; ours is the same as Slurm's.
 */
const openMpiInSlurm = (hosts: readonly string[]): (readonly [string, string])[] => [
  ["OMPI_MCA_ras", "^slurm"],
  [
    "OMPI_MCA_plm_slurm_args",
    hosts.length === 1
      ? OPEN_MPI_IN_SLURM
      : `${OPEN_MPI_IN_SLURM} --nodes=${hosts.length - 1} --nodelist=${hosts.slice(1).join(",")}`,
  ],
];

export interface RankLaunch {
  readonly argv: readonly string[];
  readonly env: readonly string[];
}

/**
 * The one process on the first host that starts all ranks. `set`: variables that the user set; they stay as they are.
 */
export const rankLaunch = (
  part: Ranks,
  file: string,
  job: Readonly<Record<string, string | undefined>>,
  set: Readonly<Record<string, string>>,
): RankLaunch => {
  const total = part.ranks.reduce((sum, count) => sum + count, 0);
  const env = [...sharedEnvironment(part), `SLIPWAY_HOST_FILE=${file}`];
  for (const [name, value] of Object.entries(job))
    if (value !== undefined && OF_THE_JOB.test(name)) env.push(`${name}=${value}`);
  if (part.by === "mpiexec") {
    if (job["SLURM_JOB_ID"] !== undefined)
      for (const [name, value] of openMpiInSlurm(part.hosts)) if (set[name] === undefined) env.push(`${name}=${value}`);
    return { argv: ["mpiexec", "-hostfile", file, "-n", String(total)], env };
  }
  env.push(`SLURM_HOSTFILE=${file}`);
  const cpus = Math.max(1, Math.floor((part.resources["cpus"] ?? 0) / FRACTION));
  return {
    // a plain srun inside the job would wait for ever for what the agents' own step holds
    argv: [
      "srun",
      "--overlap",
      "--cpu-bind=none",
      "--mem=0",
      "--kill-on-bad-exit=1",
      "--distribution=arbitrary",
      `--nodes=${part.hosts.length}`,
      `--ntasks=${total}`,
      `--cpus-per-task=${cpus}`,
    ],
    env,
  };
};
