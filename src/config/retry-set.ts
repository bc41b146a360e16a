import { z } from "zod";
import { canonicalResource, parseDuration, parseResource, resourceNameProblem } from "../core/quantities.ts";
import type { RetrySet } from "../core/retry-set.ts";
import { suggest } from "./nearest.ts";
import { badValue, parsed, type Source } from "./source.ts";

/** `retry --set NAME=VALUE`: amounts of a task for this retry alone, written as in a run file. */

const MOST_RETRIES = 1000;
const BUILT_IN = ["cpus", "gpus", "mem", "tmp"];
const TIMES = ["time-limit", "time-request"] as const;
const KNOWN: readonly string[] = [...BUILT_IN, ...TIMES, "retries"];

/** By the key of a run file; any other name is that of a resource. */
export const RetrySetInput = z.record(z.string().max(64), z.union([z.number(), z.string().max(200)]));
export type RetrySetInput = z.infer<typeof RetrySetInput>;

/** Keys of tasks that stay as they are: a retry is the same task with other amounts. */
const FIXED: Readonly<Record<string, string>> = {
  cluster: "a retry stays where its task was",
  queue: "a retry stays where its task was",
  env: "a retry keeps its task's environment",
  run: "a retry runs the same command",
  cwd: "a retry runs in the same directory",
};

const REMEDY = `It takes ${KNOWN.join(", ")}, or the name of another resource; submit a new run for anything else.`;

const readRetries = (source: Source, value: string | number): number => {
  const retries = Number(value);
  return String(value).trim() !== "" && Number.isInteger(retries) && retries >= 0 && retries <= MOST_RETRIES
    ? retries
    : badValue(source, ["retries"], `must be a whole number from 0 to ${MOST_RETRIES}, not ${value}`);
};

/** What was asked for, in units; an empty set is none. */
export const readRetrySet = (input: RetrySetInput, source: Source): RetrySet | undefined => {
  const resources: Record<string, number> = {};
  const times: { timeLimit?: number; timeRequest?: number; retries?: number } = {};
  for (const [written, value] of Object.entries(input)) {
    const key = canonicalResource(written.replaceAll("_", "-"));
    const path = [written];
    const fixed = FIXED[key];
    if (fixed !== undefined) badValue(source, path, fixed, REMEDY);
    if (key === "retries") times.retries = readRetries(source, value);
    else if (key === "time-limit" || key === "time-request") {
      const seconds = parsed(source, path, () => parseDuration(value));
      if (seconds === 0 && key === "time-limit") badValue(source, path, "must be more than 0");
      times[key === "time-limit" ? "timeLimit" : "timeRequest"] = seconds;
    } else {
      const name = BUILT_IN.includes(key) ? key : written;
      const problem = resourceNameProblem(name);
      if (problem !== undefined) badValue(source, path, problem, REMEDY);
      resources[name] = parsed(source, path, () => parseResource(name, value));
    }
  }
  const set = { ...(Object.keys(resources).length === 0 ? {} : { resources }), ...times };
  return Object.keys(set).length === 0 ? undefined : set;
};

/** Refuses a name that no task of the run asks for: it is more likely a mistake than a new resource. */
export const refuseUnknown = (set: RetrySet, asked: ReadonlySet<string>, source: Source): void => {
  for (const name of Object.keys(set.resources ?? {}))
    if (!BUILT_IN.includes(name) && !asked.has(name))
      badValue(
        source,
        [name],
        `none of these tasks asks for '${name.slice(0, 64)}'${suggest(name, [...KNOWN, ...asked])}`,
        REMEDY,
      );
};
