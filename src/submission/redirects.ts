import type { ClusterConfig, ClustersConfig } from "../config/clusters-file.ts";
import type { Resources } from "../core/resources.ts";
import type { GroupSpec, RunSpec } from "../core/spec.ts";

/** Which groups of a run go to this machine instead of a cluster that cannot be used, or because somebody says so. */

export interface Redirects {
  /** Looks which of these clusters (undefined: the default) can be used now; what it gives decides for a run, at once. */
  now(names: Iterable<string | undefined>): Promise<(spec: RunSpec) => RunSpec>;
}

export interface RedirectsOptions {
  readonly clusters: ClustersConfig;
  /** What this machine has, in units. */
  readonly here: Resources;
  /** Why tasks of a cluster run here; undefined: they do not. */
  readonly whyHere: (cluster: ClusterConfig) => Promise<string | undefined>;
}

const LOCAL = "local";

/** The same group on this machine: wherever there is room for it. */
const sentHere = (group: GroupSpec, redirect: GroupSpec["redirect"] & object): GroupSpec => {
  const { queue: _queue, ranks, ...kept } = group;
  const together = ranks === undefined ? {} : { ranks: { count: ranks.count, by: ranks.by } };
  return { ...kept, ...together, cluster: LOCAL, redirect };
};

export const createRedirects = ({ clusters, here, whyHere }: RedirectsOptions): Redirects => ({
  now: async (names) => {
    const named = [...new Set([...names].map((name) => name ?? clusters.default))];
    const causeOf = new Map<string, string | undefined>();
    for (const name of named) {
      const cluster = clusters.clusters.get(name);
      if (cluster !== undefined) causeOf.set(name, await whyHere(cluster));
    }
    return (spec) => ({
      ...spec,
      groups: spec.groups.map((group) => {
        if (group.redirect !== undefined) return sentHere(group, { here });
        const from = group.cluster ?? clusters.default;
        const cause = causeOf.get(from);
        // a queue that clusters.yaml does not have is a mistake here as well as there
        const isKnown = group.queue === undefined || clusters.clusters.get(from)?.queues.has(group.queue) === true;
        return cause === undefined || !isKnown ? group : sentHere(group, { from, cause, here });
      }),
    });
  },
});

export interface Redirected {
  readonly cluster: string;
  readonly tasks: number;
  readonly cause: string;
}

/** How many tasks of a run were meant for which cluster. */
export const redirectedOf = (
  groups: readonly { readonly spec: GroupSpec; readonly count: number }[],
): readonly Redirected[] => {
  const found = new Map<string, Redirected>();
  for (const { spec, count } of groups) {
    const { from, cause = "" } = spec.redirect ?? {};
    if (from !== undefined) found.set(from, { cluster: from, cause, tasks: (found.get(from)?.tasks ?? 0) + count });
  }
  return [...found.values()];
};
