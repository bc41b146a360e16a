import { type ClusterConfig, type ClustersConfig, clusterNamed } from "./clusters-file.ts";
import type { Resources } from "../core/resources.ts";
import type { GroupSpec, RunSpec } from "../core/spec.ts";
import { SlipwayError } from "../errors.ts";
import type { BackendOptions, TaskDialect } from "../managers/task-dialect.ts";

/**
 * Tasks that are jobs of their own, in the words of their cluster's manager: keys under their own names, and what
 * `backend` says over the task's own. What the manager does not understand is refused here, before anything is taken.
 */
export interface ResolvedJobs {
  readonly spec: RunSpec;
  /** What was ignored, for people. */
  readonly notices: readonly string[];
}

const refuse = (group: GroupSpec, key: string, detail: string, remedy: string): never => {
  throw new SlipwayError("bad-value", { where: `tasks.${group.name}`, key, detail, remedy });
};

/** Amounts of `backend` instead of the task's own, however those were said. */
const withAmounts = (group: GroupSpec, amounts: Resources): GroupSpec => {
  const names = Object.keys(amounts);
  if (names.length === 0) return group;
  const { itemResources, attemptResources, auto, ...rest } = group;
  const without = (from: Readonly<Record<string, string>> | undefined): Record<string, string> =>
    Object.fromEntries(Object.entries(from ?? {}).filter(([name]) => !names.includes(name)));
  const [perItem, perAttempt] = [without(itemResources), without(attemptResources)];
  const all = Object.entries({ ...group.resources, ...amounts });
  const learned = auto !== undefined && names.includes("mem") ? { ...auto, mem: false } : auto;
  return {
    ...rest,
    ...(learned === undefined ? {} : { auto: learned }),
    resources: Object.fromEntries(all.filter(([name, units]) => units > 0 || name === "cpus")),
    ...(Object.keys(perItem).length === 0 ? {} : { itemResources: perItem }),
    ...(Object.keys(perAttempt).length === 0 ? {} : { attemptResources: perAttempt }),
  };
};

const usageOf = (cluster: string): string => `\`slipway run -b -h --cluster ${cluster}\` prints what it takes.`;

const readBackend = (
  group: GroupSpec,
  text: string | undefined,
  dialect: TaskDialect,
  cluster: string,
): BackendOptions | undefined => {
  if (text === undefined) return undefined;
  const read = dialect.backend(text, (option, detail) =>
    refuse(group, "backend", `${option}: ${detail}`, usageOf(cluster)),
  );
  return read.help ? refuse(group, "backend", "asks for usage, with which nothing can run", usageOf(cluster)) : read;
};

/** In the words of a manager that has tasks as jobs. */
const inDialect = (
  group: GroupSpec,
  backend: string | undefined,
  dialect: TaskDialect,
  { name, manager }: ClusterConfig,
): { group: GroupSpec; notices: readonly string[] } => {
  const read = (keys: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    dialect.read(keys, (key, detail, remedy) => refuse(group, key, detail, remedy));
  const options = readBackend(group, backend, dialect, name);
  const keys = { ...read(group.job!.keys), ...read(options?.keys ?? {}) };
  const notices = (options?.notices ?? []).map((notice) => `tasks.${group.name}: ${manager.title}: ${notice}`);
  return { group: { ...withAmounts(group, options?.resources ?? {}), job: { keys } }, notices };
};

const listed = (words: readonly string[]): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

/** Sent to this machine: what only its cluster's manager understands has no meaning here. */
const sentHere = (group: GroupSpec, backend: string | undefined): { group: GroupSpec; notices: readonly string[] } => {
  const ignored = [...Object.keys(group.job!.keys), ...(backend === undefined ? [] : ["backend"])];
  return {
    group: { ...group, job: { keys: {} } },
    notices:
      ignored.length === 0
        ? []
        : [
            `tasks.${group.name} runs on this machine, where ${listed(ignored)} ${ignored.length === 1 ? "is" : "are"} ignored`,
          ],
  };
};

export const createTaskJobs =
  (clusters: ClustersConfig) =>
  (spec: RunSpec, backends: ReadonlyMap<number, string>): ResolvedJobs => {
    const notices: string[] = [];
    const resolve = (group: GroupSpec, index: number): GroupSpec => {
      if (group.job === undefined) return group;
      const backend = backends.get(index);
      const take = (resolved: { group: GroupSpec; notices: readonly string[] }): GroupSpec => {
        notices.push(...resolved.notices);
        return resolved.group;
      };
      if (group.redirect !== undefined) return take(sentHere(group, backend));
      const cluster = clusterNamed(clusters, group.cluster);
      const { batch, title } = cluster.manager;
      if (batch?.task !== undefined) return take(inDialect(group, backend, batch.task, cluster));
      if (batch !== undefined)
        refuse(
          group,
          "via",
          `cluster '${cluster.name}' is of type ${cluster.type}, which takes no tasks as jobs of their own`,
          "Leave via out: its tasks go through pilots.",
        );
      const [key] = [...Object.keys(group.job.keys), ...(backend === undefined ? [] : ["backend"])];
      if (key !== undefined)
        refuse(
          group,
          key,
          `means nothing to cluster '${cluster.name}' (${title})`,
          "Remove it, or name another cluster.",
        );
      return group;
    };
    return { spec: { ...spec, groups: spec.groups.map(resolve) }, notices };
  };
