import type { ClusterConfig } from "../config/clusters-file.ts";
import type { Resources } from "../core/resources.ts";
import type { CommandsOptions, RunCommand } from "./commands.ts";
import type { Provider } from "./provider.ts";

/** What speaks to a workload manager. Only the server has it. */
export interface Driver<Own = unknown, OwnOfCluster = unknown> {
  /** Which outcomes of its commands may pass by themselves. */
  readonly isTransient?: NonNullable<CommandsOptions["isTransient"]>;
  create(options: DriverOptions<Own, OwnOfCluster>): Provider;
}

export interface DriverOptions<Own = unknown, OwnOfCluster = unknown> {
  readonly cluster: ClusterConfig<Own, OwnOfCluster>;
  readonly run: RunCommand;
  /** Paths of its programs, where a directory is configured. */
  readonly programs: Readonly<Record<string, string>>;
  /** Ask for the jobs of all users, not only for those of the server's own. */
  readonly everyone: boolean;
  /** For those whose jobs run on this machine. */
  readonly here?: Here;
}

export interface Here {
  readonly home: string;
  /** What this machine offers. */
  readonly machine: Resources;
}
