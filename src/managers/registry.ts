import { join } from "node:path";
import type { ClusterConfig } from "../config/clusters-file.ts";
import { toUnits } from "../core/resources.ts";
import { SlipwayError } from "../errors.ts";
import { findProgram } from "../find-program.ts";
import { checkedProvider } from "./checked-provider.ts";
import { CommandError, type CommandsOptions, createCommands, reaching, type RunCommand } from "./commands.ts";
import type { Driver, Here } from "./driver.ts";
import { localDriver } from "./local/driver/driver.ts";
import type { ClusterType } from "./managers.ts";
import type { ModuleManager } from "./module.ts";
import { oarDriver } from "./oar/driver/driver.ts";
import { pbsDriver } from "./pbs/driver/driver.ts";
import type { Provider } from "./provider.ts";
import { sgeDriver } from "./sge/driver/driver.ts";
import { simulatedDriver } from "./simulated/driver/driver.ts";
import { slurmDriver } from "./slurm/driver/driver.ts";

/** Which driver speaks to which type of cluster: the one door to the managers, and only the server's. */
const DRIVERS: Readonly<Record<ClusterType, Driver>> = {
  slurm: slurmDriver,
  pbs: pbsDriver,
  sge: sgeDriver,
  oar: oarDriver,
  local: localDriver,
  simulated: simulatedDriver,
};

/** The driver of a manager from outside, which is given our errors and how we count. */
const driverOfModule = (given: ModuleManager): Driver => ({
  ...(given.isTransient === undefined ? {} : { isTransient: given.isTransient }),
  create: ({ cluster, run, programs }) => {
    const made = given.create({
      cluster,
      run: reaching(run, cluster.name),
      programs,
      units: toUnits,
      errors: {
        unreachable: (detail) => new SlipwayError("cluster-unreachable", { cluster: cluster.name, detail }),
        refused: (detail) => new SlipwayError("cluster-refused", { cluster: cluster.name, detail }),
        lost: (detail) => new CommandError(detail, [], true),
      },
    });
    return checkedProvider(made, cluster.name);
  },
});

export interface ProviderOptions extends CommandsOptions {
  /** For launches, which run in many users' names. */
  readonly everyone?: boolean;
  /** For clusters whose jobs run on this machine. */
  readonly here?: Here;
}

/**
 * The drivers of a cluster: the server's, and one for each user that `become` can act as. Whatever speaks to a manager
 * is made here: programs come from the cluster's `bin`, and its `config` is in their environment. All of them share one
 * bound on commands at once.
 */
export const createProviders = (
  cluster: ClusterConfig,
  { everyone = false, here, ...options }: ProviderOptions = {},
): ((user?: string) => Provider) => {
  const { batch } = cluster.manager;
  const { outside } = cluster.manager;
  const driver = outside === undefined ? DRIVERS[cluster.type as ClusterType] : driverOfModule(outside);
  const run = createCommands({
    ...(driver.isTransient === undefined ? {} : { isTransient: driver.isTransient }),
    ...options,
    env: { ...batch?.environment(cluster), ...options.env },
  });
  const { bin } = cluster;
  const named = batch === undefined || bin === undefined ? [] : [...batch.programs, ...batch.further];
  const programs = Object.fromEntries(named.map((program) => [program, join(bin!, program)]));
  // sudo has a PATH of its own: the command is named as the rules of `slipway sudoers` name it
  const as =
    (user: string): RunCommand =>
    async ([name = "", ...words], given) =>
      run([name.includes("/") ? name : ((await findProgram(name)) ?? name), ...words], { ...given, user });
  const made = new Map<string | undefined, Provider>();
  return (user) => {
    const found =
      made.get(user) ??
      driver.create({
        cluster,
        run: user === undefined ? run : as(user),
        programs,
        everyone,
        ...(here === undefined ? {} : { here }),
      });
    made.set(user, found);
    return found;
  };
};

/** The driver in the server's own name. */
export const createProvider = (cluster: ClusterConfig, options: ProviderOptions = {}): Provider =>
  createProviders(cluster, options)();
