import { readFileSync } from "node:fs";
import { isExported } from "../config/environment.ts";
import type { AgentSettings } from "../protocol/agent-settings.ts";

/**
 * What a queue's `environment` and `prologue` changed on this node (`module load …`). Tasks get it: it overrides their
 * submitter's environment, and what they set themselves overrides it. Of the manager's own variables they get none where
 * they share a job: a program that found SLURM_JOB_ID or PBS_NODEFILE would think that the whole job is its own. Where
 * it is, the task gets them.
 */
export const changedOnNode = (
  before: Readonly<Record<string, string>>,
  now: Readonly<Record<string, string | undefined>>,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(now).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && isExported(entry[0]) && before[entry[0]] !== entry[1],
    ),
  );

/** The output of `env -0`, which the pilot's script wrote before anything else. */
export const parseEnvironment = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split("\0")
      .filter((pair) => pair.includes("="))
      .map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]),
  );

/** What describes a job to the task whose own it is. */
export const ofTheJob = (
  variables: string,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> => {
  const pattern = new RegExp(variables);
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && pattern.test(entry[0])),
  );
};

const changed = (file: string): Readonly<Record<string, string>> => {
  try {
    return changedOnNode(parseEnvironment(readFileSync(file, "utf8")), process.env);
  } catch {
    // it could not be written: tasks get what their submitter had
    return {};
  }
};

export const nodeEnvironment = ({
  environmentFile,
  variables,
}: Pick<AgentSettings, "environmentFile" | "variables">): Readonly<Record<string, string>> => ({
  ...(environmentFile === undefined ? {} : changed(environmentFile)),
  ...(variables === undefined ? {} : ofTheJob(variables, process.env)),
});
