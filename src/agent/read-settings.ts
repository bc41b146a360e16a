import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import type { AgentSettings } from "../protocol/agent-settings.ts";

/** The agent's settings, from its command line or from a file that only its user can read. */

type Environment = Readonly<Record<string, string | undefined>>;

/** Expands `$TMPDIR/x` with the node's own value; if it has none, with the system's temporary directory. */
export const expandScratch = (scratch: string, env: Environment): string => {
  const [, name, rest] = /^\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?(.*)$/s.exec(scratch) ?? [];
  if (name === undefined) return scratch;
  const value = env[name] ?? "";
  return `${isAbsolute(value) ? value : tmpdir()}${rest}`;
};

export interface GivenSettings {
  readonly settings?: string | undefined;
  readonly "settings-file"?: string | undefined;
  /** What the pilot's script found out about this node; anything but a number from 1 up is ignored. */
  readonly cpus?: string | undefined;
  /** The element of an array of tasks' jobs that this one is. */
  readonly element?: string | undefined;
}

const taskJobOf = ({ taskJob }: AgentSettings, element: string | undefined): AgentSettings["taskJob"] => {
  if (taskJob === undefined || element === undefined) return taskJob;
  // as the wrong element it would run another one's task
  if (!/^(0|[1-9]\d{0,8})$/.test(element))
    throw new Error(`--element is '${element}', not the number of a job in an array`);
  return { ...taskJob, element: Number(element) };
};

/** Files that each element of an array has for itself, in a directory with its number. */
const ownFiles = ({ environmentFile, ranks }: AgentSettings, element: string | undefined): Partial<AgentSettings> => {
  if (element === undefined) return {};
  const own = (file: string): string => join(dirname(file), element, basename(file));
  return {
    ...(environmentFile === undefined ? {} : { environmentFile: own(environmentFile) }),
    ...(ranks === undefined ? {} : { ranks: { ...ranks, hostsFile: own(ranks.hostsFile) } }),
  };
};

export const readSettings = (given: GivenSettings, env: Environment = process.env): AgentSettings => {
  const file = given["settings-file"];
  const text = given.settings ?? (file === undefined ? undefined : readFileSync(file, "utf8"));
  if (text === undefined)
    throw new Error("agent.cjs is started by a pilot, or by `slipway agent`: --settings or --settings-file is missing");
  const settings = JSON.parse(text) as AgentSettings;
  const managerCpus = /^[1-9]\d{0,5}$/.test(given.cpus ?? "") ? Number(given.cpus) : undefined;
  const taskJob = taskJobOf(settings, given.element);
  return {
    ...settings,
    scratch: expandScratch(settings.scratch, env),
    managerCpus,
    ...(taskJob === undefined ? {} : { taskJob, ...ownFiles(settings, given.element) }),
  };
};
