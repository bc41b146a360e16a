import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../cli/slipway-process.ts";
import { FEATURES, type Feature } from "./features.ts";
import type { Verdict } from "./seed.ts";

/** The results of a run of seeds, and their place in docs/faults.md. */

export interface Numbers {
  readonly first: number;
  readonly last: number;
  readonly features: readonly Feature[];
  passed: number;
  failed: number;
  kills: number;
  powerLosses: number;
  tasks: number;
  executions: number;
  requests: number;
  readonly began: number;
}

export const noNumbers = (first: number, last: number, features: readonly Feature[]): Numbers => ({
  first,
  last,
  features,
  passed: 0,
  failed: 0,
  kills: 0,
  powerLosses: 0,
  tasks: 0,
  executions: 0,
  requests: 0,
  began: performance.now(),
});

export const addVerdict = (numbers: Numbers, { problems, tasks, count }: Verdict): void => {
  numbers[problems.length === 0 ? "passed" : "failed"] += 1;
  numbers.kills += count.kills;
  numbers.powerLosses += count.powerLosses;
  numbers.tasks += tasks;
  numbers.executions += count.executions;
  numbers.requests += count.requests;
};

const DOCUMENT = join(ROOT, "docs", "faults.md");
const [BEGIN, END] = ["<!-- numbers: written by `npm run test:faults -- --write-docs` -->", "<!-- /numbers -->"];

const git = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)("git", args, { cwd: ROOT })).stdout.trim();

/** The numbers name a commit, so exactly that commit must have been tested. Documents do not count. */
export const refuseChanges = async (): Promise<void> => {
  const changed = (await git("status", "--porcelain"))
    .split("\n")
    .filter((line) => line !== "" && !line.endsWith(".md"));
  if (changed.length > 0)
    throw new Error(`--write-docs names a commit, and these files are not as it has them:\n${changed.join("\n")}`);
};

const shown = (count: number): string => count.toLocaleString("en-US");

/** Returns what it wrote. */
export const writeNumbers = async (numbers: Numbers): Promise<string> => {
  const { first, last, features } = numbers;
  const commit = await git("rev-parse", "--short=12", "HEAD");
  const minutes = Math.max(1, Math.round((performance.now() - numbers.began) / 60_000));
  const lines = [
    `Commit \`${commit}\`, ${new Date().toISOString().slice(0, 10)}, with ${features.length === FEATURES.length ? "everything" : features.join(", ") || "the plain trouble"} switched on:`,
    "",
    `- seeds ${first} to ${last}: ${shown(numbers.passed)} passed, ${shown(numbers.failed)} failed, in ${minutes} minutes`,
    `- ${shown(numbers.kills)} kills, ${shown(numbers.powerLosses)} power losses`,
    `- ${shown(numbers.tasks)} tasks, ${shown(numbers.executions)} executions counted, ${shown(numbers.requests)} requests`,
  ];
  const text = await readFile(DOCUMENT, "utf8");
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${DOCUMENT} has no place for numbers`);
  await writeFile(DOCUMENT, `${text.slice(0, from)}${BEGIN}\n\n${lines.join("\n")}\n\n${text.slice(to)}`);
  return lines.join("\n");
};
