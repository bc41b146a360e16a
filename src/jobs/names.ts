import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { TaskJobId } from "../core/ids.ts";

/**
 * Names of tasks' jobs: `repo-key` and the task's name, for people (managers/task-job-name.ts); and twelve hex digits of the intent, by which the
 * job is found again when the manager's answer was lost. No other home has the same digits: they depend on its path and
 * its token.
 */

const DIGITS = 12;

export const markOf = (home: string, secret: string): string =>
  createHash("sha256").update(home).update("\0").update(secret).digest("hex");

export const intentOf = (mark: string, job: TaskJobId): string =>
  createHash("sha256").update(`${mark}\0${job}`).digest("hex").slice(0, DIGITS);

/** The digits at the end of a name, or undefined. */
export const intentIn = (name: string): string | undefined => /-([0-9a-f]{12})$/.exec(name)?.[1];

/** What stands in front of a task's name, where no `repo-key` was given. */
export const defaultKey = (cwd: string): string => `${basename(cwd)}:`;

/**
 * The directory of a job, in `jobs/` of the home: its name, as far as every manager takes it in the path of an output
 * file. OAR refuses colons and much else there, Slurm replaces what follows a percent sign.
 */
export const directoryName = (jobName: string): string => jobName.replaceAll(/[^\w.-]/g, "_").slice(-80);
