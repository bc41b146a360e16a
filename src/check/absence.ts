import { stat } from "node:fs/promises";
import type { ClusterConfig } from "../config/clusters-file.ts";
import { findProgram } from "../find-program.ts";

/** Whether a cluster could work on this machine at all: are its manager's programs and its configuration here? */

export interface Trouble {
  readonly cause: string;
  readonly remedy: string;
}

const isGone = async (path: string): Promise<boolean> => {
  try {
    await stat(path);
    return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR";
  }
};

/** The programs without which nothing works and that are not here; empty for a cluster on this machine. */
export const missingPrograms = async ({ bin, manager }: ClusterConfig): Promise<string[]> => {
  const programs = manager.batch?.programs ?? [];
  const found = await Promise.all(programs.map((program) => findProgram(program, bin)));
  return programs.filter((_, i) => found[i] === undefined);
};

/** Looks at files only: quick, and asks nobody. */
export const absenceOf = async (
  cluster: ClusterConfig,
  env: Readonly<NodeJS.ProcessEnv> = process.env,
): Promise<Trouble | undefined> => {
  const { bin, manager } = cluster;
  const missing = await missingPrograms(cluster);
  if (missing.length > 0)
    return {
      cause: `${missing.join(", ")}: not found ${bin === undefined ? "on the server's PATH" : `in ${bin}`}`,
      remedy: `set \`bin\` of this cluster to the directory of ${manager.title}'s programs, or load its module before \`slipway up\``,
    };
  for (const path of manager.batch?.configuration?.(cluster, env) ?? [])
    if (await isGone(path))
      return {
        cause: `${manager.title}'s configuration is not here: there is no ${path}`,
        remedy: "correct it in clusters.yaml, or in the environment of `slipway up`",
      };
  return undefined;
};
