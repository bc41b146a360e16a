import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ContainerFacts, LaunchFacts } from "../plan/plan.ts";
import type { LaunchSettings } from "../plan/settings.ts";
import type { LaunchSpec } from "../plan/launch-spec.ts";
import type { ClusterConfig } from "../../config/clusters-file.ts";
import { findProgram } from "../../find-program.ts";
import { quoteFor } from "../../core/shell-quoting.ts";
import { preflightOf } from "../../containers/preflight.ts";
import { type RunCommand, createCommands } from "../../managers/commands.ts";
import type { ClusterDescription, Provider } from "../../managers/provider.ts";
import { type LaunchManager, MANAGERS } from "../../managers/managers.ts";
import { createProviders } from "../../managers/registry.ts";
import { becomeUser } from "./identity.ts";

/** A cluster on which jobs can be launched: its manager's driver in each user's name, and what the cluster offers. */
export interface LaunchCluster {
  readonly config: ClusterConfig;
  readonly settings: LaunchSettings;
  readonly manager: LaunchManager;
  /** Where its job directories are. */
  readonly root: string;
  /** In the name of a user, or the server's own. */
  provider(user?: string): Provider;
  /** The command that submits a job, in the server's name or a user's, as a person would type it. */
  submission(words: readonly string[], user?: string): Promise<readonly string[]>;
  /** Shell lines that let a job find the commands of this manager before those of another that is also installed. */
  searchPath(): Promise<readonly string[]>;
  /** Partitions and the container's runtime, as they are now; it asks for partitions at most once a minute. */
  facts(spec: LaunchSpec): Promise<LaunchFacts>;
}

const FRESH_MS = 60_000;

/** What can be known here about the container that a launch asks for. */
export const containerFacts = async (
  spec: LaunchSpec,
  settings: LaunchSettings,
  run: RunCommand,
): Promise<ContainerFacts> => {
  const { programs, paths } = preflightOf(spec.runType ?? settings.runType, spec.image, settings.imageRoot);
  const images: string[] = [];
  for (const path of paths) if ((await stat(path).catch(() => undefined)) !== undefined) images.push(path);
  for (const name of programs) {
    const program = await findProgram(name);
    if (program === undefined) continue;
    const { stdout, stderr } = await run([program, "--version"]).catch(() => ({ stdout: "", stderr: "" }));
    return { version: (stdout.trim() || stderr.trim()).slice(0, 200), images };
  }
  return { images };
};

/** Every job has these in its PATH. */
const USUAL = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"];

export const createLaunchCluster = (
  config: ClusterConfig,
  manager: LaunchManager,
  settings: LaunchSettings,
  defaultRoot: string,
): LaunchCluster => {
  const { bin } = config;
  const [submit] = MANAGERS[manager].launch.commands;
  const run = createCommands();
  const provider = createProviders(config, { become: becomeUser, everyone: true });
  let described: { at: number; answer: Promise<ClusterDescription> } | undefined;

  const describe = async (): Promise<ClusterDescription> => {
    if (described === undefined || performance.now() - described.at > FRESH_MS)
      described = { at: performance.now(), answer: provider().describe() };
    try {
      return await described.answer;
    } catch (error) {
      described = undefined;
      throw error;
    }
  };
  return {
    config,
    settings,
    manager,
    root: settings.storageRoot ?? defaultRoot,
    provider,
    submission: async (words, user) => {
      const variables = config.manager.batch!.environment(config);
      const pairs = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
      const program = bin === undefined ? submit : join(bin, submit);
      if (user === undefined) return [...(pairs.length === 0 ? [] : ["env", ...pairs]), program, ...words];
      const full = bin === undefined ? ((await findProgram(submit)) ?? submit) : program;
      return becomeUser(user, [full, ...words], variables);
    },
    searchPath: async () => {
      const program = bin === undefined ? await findProgram(submit) : undefined;
      const directory = bin ?? (program === undefined ? undefined : dirname(program));
      if (directory === undefined || (bin === undefined && USUAL.includes(directory))) return [];
      return [`PATH=${quoteFor(directory, "word")}:$PATH`, "export PATH"];
    },
    facts: async (spec) => {
      const [{ partitions = [] }, container] = await Promise.all([describe(), containerFacts(spec, settings, run)]);
      return { manager, partitions, container };
    },
  };
};
