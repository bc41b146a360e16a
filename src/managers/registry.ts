import { join } from "node:path";
import type { ClusterType } from "../config/cluster-keys.ts";
import type { ClusterConfig } from "../config/clusters-file.ts";
import { findProgram } from "../find-program.ts";
import { type CommandsOptions, createCommands, type RunCommand } from "./commands.ts";
import { oarDirectives } from "./oar/directives.ts";
import { createOarProvider, oarIsTransient } from "./oar/driver/provider.ts";
import { pbsDirectives } from "./pbs/directives.ts";
import { createPbsProvider, pbsIsTransient } from "./pbs/driver/provider.ts";
import type { PilotAsk } from "./pilot-ask.ts";
import type { Provider } from "./provider.ts";
import { sgeDirectives } from "./sge/directives.ts";
import { createSgeProvider, sgeIsTransient } from "./sge/driver/provider.ts";
import { slurmDirectives } from "./slurm/directives.ts";
import { createSlurmProvider, slurmIsTransient } from "./slurm/driver/provider.ts";

/** Which driver speaks to which type of cluster. A new manager is one more row here. */
export interface Manager {
  /** For people. */
  readonly title: string;
  /** Without these nothing works. */
  readonly programs: readonly string[];
  readonly directives: (ask: PilotAsk) => string[];
  readonly isTransient: NonNullable<CommandsOptions["isTransient"]>;
  /** Variables by which its commands find it. */
  readonly environment: (cluster: ClusterConfig) => Readonly<Record<string, string>>;
  readonly create: (options: ManagerOptions) => Provider;
}

export interface ManagerOptions {
  readonly cluster: ClusterConfig;
  readonly run: RunCommand;
  /** Paths of its programs, where a directory is configured. */
  readonly programs: Readonly<Record<string, string>>;
  /** Jobs of all users are asked for, not those of the server's own user alone. */
  readonly everyone: boolean;
}

const variables = (pairs: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(pairs).filter((pair): pair is [string, string] => pair[1] !== undefined));

export const MANAGERS: Readonly<Partial<Record<ClusterType, Manager>>> = {
  slurm: {
    title: "Slurm",
    programs: ["sbatch", "squeue", "scancel", "sinfo"],
    directives: slurmDirectives,
    isTransient: slurmIsTransient,
    environment: ({ config }) => variables({ SLURM_CONF: config }),
    create: ({ run, programs, everyone }) => createSlurmProvider({ run, programs, mineOnly: !everyone }),
  },
  pbs: {
    title: "PBS",
    programs: ["qsub", "qstat", "qdel", "pbsnodes"],
    directives: pbsDirectives,
    isTransient: pbsIsTransient,
    environment: ({ config }) => variables({ PBS_CONF_FILE: config }),
    create: ({ run, programs, cluster }) => createPbsProvider({ run, programs, cluster: cluster.name }),
  },
  sge: {
    title: "Grid Engine",
    programs: ["qsub", "qstat", "qdel", "qhost", "qconf"],
    directives: sgeDirectives,
    isTransient: sgeIsTransient,
    environment: ({ root, cell, cluster }) => variables({ SGE_ROOT: root, SGE_CELL: cell, SGE_CLUSTER_NAME: cluster }),
    create: ({ run, cluster: { bin, root, cell, cluster } }) =>
      createSgeProvider({ run, ...variables({ bin, root, cell, cluster }) }),
  },
  oar: {
    title: "OAR",
    programs: ["oarsub", "oarstat", "oardel", "oarnodes"],
    directives: oarDirectives,
    isTransient: oarIsTransient,
    environment: () => ({}),
    create: ({ run, cluster: { bin, queues } }) => {
      const named = [...queues.values()].map(({ oar }) => oar?.memoryPerCorePropertyName).find((name) => name != null);
      return createOarProvider({ run, ...variables({ bin, memoryPerCoreProperty: named ?? undefined }) });
    },
  },
};

export const isManaged = (type: ClusterType): boolean => MANAGERS[type] !== undefined;

/** Programs that drivers call besides those they cannot do without. */
const FURTHER = ["sacct", "scontrol", "srun", "tracejob"];

export interface ProviderOptions extends CommandsOptions {
  /** For launches, which run in many users' names. */
  readonly everyone?: boolean;
}

/**
 * The drivers of a cluster with commands of its own: the server's, and one for each user that `become` can act as.
 * Undefined for types that need none. Whatever speaks to a manager is made here: programs come from the cluster's `bin`,
 * and its `config` is in their environment. All of them share one bound on commands at once.
 */
export const createProviders = (
  cluster: ClusterConfig,
  { everyone = false, ...options }: ProviderOptions = {},
): ((user?: string) => Provider) | undefined => {
  const manager = MANAGERS[cluster.type];
  if (manager === undefined) return undefined;
  const run = createCommands({
    isTransient: manager.isTransient,
    ...options,
    env: { ...manager.environment(cluster), ...options.env },
  });
  const { bin } = cluster;
  const programs =
    bin === undefined
      ? {}
      : Object.fromEntries([...manager.programs, ...FURTHER].map((program) => [program, join(bin, program)]));
  // sudo has a PATH of its own: the command is named as the rules of `slipway sudoers` name it
  const as =
    (user: string): RunCommand =>
    async ([name = "", ...words], given) =>
      run([name.includes("/") ? name : ((await findProgram(name)) ?? name), ...words], { ...given, user });
  const made = new Map<string | undefined, Provider>();
  return (user) => {
    const found =
      made.get(user) ?? manager.create({ cluster, run: user === undefined ? run : as(user), programs, everyone });
    made.set(user, found);
    return found;
  };
};

/** The driver in the server's own name. */
export const createProvider = (cluster: ClusterConfig, options: ProviderOptions = {}): Provider | undefined =>
  createProviders(cluster, options)?.();
