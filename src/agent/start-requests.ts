import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { makeDirectories } from "../protocol/make-directories.ts";
import { slotEnvironment, taskEnvironment } from "./environment.ts";
import type { Gpus } from "./gpus.ts";
import type { AgentSettings } from "../protocol/agent-settings.ts";
import { pinnableCpus } from "./slots.ts";
import type { CommonEntries } from "./spawner/protocol.ts";
import type { StartRequest } from "./spawner/spawner.ts";
import { type AgentTask, type Chain, tmpdirPrefix, tokenOf } from "./task.ts";
import { type ExpandedTask, expandTask, indexOf } from "./templates.ts";

/** What a spawner needs to start a task: its command, its environment, its files and its cores. */
export interface StartRequests {
  /** The command of a task, from its group's template. Throws if it cannot be made. */
  expand(task: AgentTask): ExpandedTask;
  /** `after`: the task that must have ended before. */
  make(
    task: AgentTask,
    expanded: ExpandedTask,
    after: AgentTask | undefined,
  ): StartRequest & { readonly tmpdir: string };
}

export interface StartRequestsOptions {
  readonly uuid: string;
  readonly settings: Pick<AgentSettings, "scratch" | "pin" | "graceMs">;
  readonly cgroup: string | null;
  readonly gpus: Gpus;
  /** Further variables of every task. */
  readonly environment: readonly string[];
}

/** Ranks that are started one by one write files of their own; a launcher stands before the command. */
const forRank = ({ rank }: AgentTask, task: ExpandedTask): ExpandedTask => {
  if (rank === undefined) return task;
  if (rank.launcher.length > 0) return { ...task, argv: [...rank.launcher, ...task.argv] };
  const own = (path: string | null): string | null => (path === null ? null : `${path}.${rank.number}`);
  return { ...task, stdout: own(task.stdout), stderr: own(task.stderr) };
};

const makeParents = (path: string | null): void => {
  if (path === null) return;
  const parent = dirname(path);
  // checked each time: people tidy up between two runs
  if (existsSync(parent)) return;
  try {
    makeDirectories(parent);
  } catch {
    // the spawner will name the file that cannot be opened
    return;
  }
};

export const createStartRequests = (options: StartRequestsOptions): StartRequests => {
  const { uuid, settings, gpus, environment, cgroup } = options;
  const tmpdir = tmpdirPrefix(settings.scratch, uuid);
  /** Of the group that was last in a chain: usually all its members are of one. */
  const common = new WeakMap<Chain, { readonly group: object; readonly resources: object } & CommonEntries>();

  const commonOf = (task: AgentTask): CommonEntries => {
    const chain = task.chain!;
    const group = task.run.groups.get(task.group)!;
    const known = common.get(chain);
    if (known?.group === group && known.resources === task.resources) return known;
    const { source } = group;
    const entries = slotEnvironment({
      runId: task.run.id,
      name: source.name,
      slot: chain.slot,
      resources: task.resources,
      gpus,
      env: source.env["OMP_NUM_THREADS"] === undefined ? task.run.env : source.env,
    });
    const made = { group, resources: task.resources, entries: [...entries, ...environment] };
    common.set(chain, made);
    return made;
  };

  return {
    expand: (task) => {
      const group = task.run.groups.get(task.group)!;
      return forRank(task, expandTask(task.run, group, task.row, task.attempt, task.item));
    },

    make: (task, expanded, after) => {
      const { source } = task.run.groups.get(task.group)!;
      const { slot } = task.chain!;
      const token = tokenOf(uuid, task);
      makeParents(expanded.stdout);
      makeParents(expanded.stderr);
      const pinned = settings.pin || source.pin === true ? pinnableCpus(slot) : [];
      const own = taskEnvironment({
        taskIndex: indexOf(task.run, task.row),
        attempt: task.attempt,
        item: expanded.item,
        token,
      });
      return {
        id: task.id,
        argv: expanded.argv,
        env: task.run.id,
        extraEnv: expanded.env,
        commonEnv: commonOf(task),
        ownEnv: task.rank === undefined ? own : [...own, ...task.rank.env],
        cwd: expanded.cwd,
        stdout: expanded.stdout,
        stderr: expanded.stderr,
        append: source.append === true,
        tmpdir,
        cpus: pinned.length > 0 ? pinned : null,
        token,
        graceMs: settings.graceMs,
        after: after?.id ?? null,
        cgroup,
      };
    },
  };
};
