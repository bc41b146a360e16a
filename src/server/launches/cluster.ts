import { access, constants, stat } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import type { ContainerFacts, LaunchFacts, LaunchManager } from "../../batch/plan.ts";
import type { LaunchSettings } from "../../batch/settings.ts";
import type { LaunchSpec } from "../../batch/launch-spec.ts";
import type { ClusterConfig } from "../../config/clusters-file.ts";
import { quoteFor } from "../../core/shell-quoting.ts";
import { preflightOf } from "../../containers/preflight.ts";
import { type RunCommand, createCommands } from "../../providers/commands.ts";
import { createPbsProvider, pbsIsTransient } from "../../providers/pbs/provider.ts";
import type { ClusterDescription, Provider } from "../../providers/provider.ts";
import { createSlurmProvider, slurmIsTransient } from "../../providers/slurm/provider.ts";
import { becomeUser } from "./identity.ts";

/** A cluster that jobs can be launched on: its manager's driver in each user's name, and what is found there. */
export interface LaunchCluster {
  readonly config: ClusterConfig;
  readonly settings: LaunchSettings;
  readonly manager: LaunchManager;
  /** Where its job directories are. */
  readonly root: string;
  /** In the name of a user, or the server's own. */
  provider(user?: string): Provider;
  /** Shell lines with which a job finds the commands of this manager, before those of another that is installed too. */
  searchPath(): Promise<readonly string[]>;
  /** Partitions and the container's runtime, as they are now; partitions are asked for at most once a minute. */
  facts(spec: LaunchSpec): Promise<LaunchFacts>;
}

const FRESH_MS = 60_000;

const findProgram = async (name: string): Promise<string | undefined> => {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(directory, name);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
};

/** What can be known here of the container that a launch asks for. */
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
const SUBMIT = { slurm: "sbatch", pbs: "qsub" } as const;

export const createLaunchCluster = (
  config: ClusterConfig,
  manager: LaunchManager,
  settings: LaunchSettings,
  defaultRoot: string,
): LaunchCluster => {
  const run = createCommands({
    become: becomeUser,
    isTransient: manager === "slurm" ? slurmIsTransient : pbsIsTransient,
  });
  const make = (words: RunCommand): Provider =>
    manager === "slurm" ? createSlurmProvider({ run: words }) : createPbsProvider({ run: words, cluster: config.name });
  const providers = new Map<string, Provider>([["", make(run)]]);
  let described: { at: number; answer: Promise<ClusterDescription> } | undefined;

  const provider = (user = ""): Provider => {
    let found = providers.get(user);
    if (found === undefined) {
      // sudo has a PATH of its own: the command is named as the rules of `slipway sudoers` name it
      found = make(async ([name = "", ...words], options) =>
        run([(await findProgram(name)) ?? name, ...words], { ...options, user }),
      );
      providers.set(user, found);
    }
    return found;
  };
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
    searchPath: async () => {
      const program = await findProgram(SUBMIT[manager]);
      if (program === undefined || USUAL.includes(dirname(program))) return [];
      return [`PATH=${quoteFor(dirname(program), "word")}:$PATH`, "export PATH"];
    },
    facts: async (spec) => {
      const [{ partitions = [] }, container] = await Promise.all([describe(), containerFacts(spec, settings, run)]);
      return { manager, partitions, container };
    },
  };
};
