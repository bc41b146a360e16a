import { type ClustersConfig, clusterNamed } from "../config/clusters-file.ts";
import { resourcesByAttempt } from "../core/items.ts";
import { formatResource } from "../core/quantities.ts";
import type { Resources } from "../core/resources.ts";
import type { GroupSpec, RunSpec } from "../core/spec.ts";
import { shapeOf } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { SlipwayError } from "../errors.ts";
import { concurrency, shortage } from "../scheduler/capacity.ts";
import type { AccountRule } from "../scheduler/scheduler.ts";
import { type NodeSizes, jobShortage, partitionOf } from "./job-fits.ts";

/** Refuses, before anything is taken, what names something that does not exist or can never run anywhere. */
export interface FitCheck {
  checkSpec(spec: RunSpec): void;
  /** Refuses what can never run anywhere, naming the resource, the amount and the largest available. */
  checkFits(group: GroupSpec, resources: Resources, task: string): void;
  /** The same for each attempt that a task may have. */
  checkAttempts(group: GroupSpec, attempts: readonly Resources[], task: string): void;
}

export interface FitOptions {
  readonly state: Pick<State, "runs" | "archived">;
  readonly clusters: ClustersConfig;
  /** What the largest node of each usable cluster offers. */
  readonly largest: ReadonlyMap<string, Resources>;
  /** What several agents share. */
  readonly shared: readonly AccountRule[];
  /** What a cluster's manager last said about its nodes; undefined: nothing yet. */
  readonly described: (cluster: string) => NodeSizes | undefined;
}

interface Lack {
  readonly name: string;
  readonly asked: number;
  readonly has: number;
}

/** It counts what lies on nodes, not what one of them has. */
const isOfNodes = (name: string): boolean => name === "nodes" || name === "ranks";

/** An amount for people to read. */
const amountOf = (name: string, units: number): string =>
  isOfNodes(name) ? String(units) : formatResource(name, units);

export const createFitCheck = ({ state, clusters, largest, shared, described }: FitOptions): FitCheck => {
  /** The cluster of a group, and its largest node. */
  const targetOf = (group: GroupSpec): { cluster: string; node: Resources } => {
    const cluster = clusterNamed(clusters, group.cluster);
    const node = largest.get(cluster.name);
    if (node !== undefined) return { cluster: cluster.name, node };
    throw new SlipwayError("bad-value", {
      where: `tasks.${group.name}`,
      key: "cluster",
      detail: `'${cluster.name}' is of type ${cluster.type}, which this version cannot submit to yet`,
      remedy: "Use another cluster.",
    });
  };

  /** Ranks stay within one pilot: its nodes must hold them all. */
  const tooFewNodes = (
    { ranks, queue }: GroupSpec,
    resources: Resources,
    cluster: string,
    node: Resources,
  ): Lack | undefined => {
    if (ranks === undefined) return undefined;
    const queues = [...clusters.clusters.get(cluster)!.queues.values()];
    const nodes = Math.max(...queues.filter(({ name }) => (queue ?? name) === name).map((each) => each.nodes));
    if (ranks.nodes !== undefined && ranks.nodes > nodes) return { name: "nodes", asked: ranks.nodes, has: nodes };
    const room = concurrency(node, resources);
    const most = ranks.nodes === undefined ? room * nodes : room * ranks.nodes;
    return ranks.count > most ? { name: "ranks", asked: ranks.count, has: most } : undefined;
  };

  const checkAttempts: FitCheck["checkAttempts"] = (group, attempts, task) => {
    for (const [i, resources] of attempts.entries())
      checkFits(group, resources, attempts.length === 1 ? task : `${task}, attempt ${i + 1},`);
  };

  /** All ranks together hold no more of what is shared than there is of it. */
  const tooManyRanks = ({ ranks }: GroupSpec, resources: Resources, cluster: string): Lack | undefined => {
    if (ranks === undefined) return undefined;
    let most = ranks.count;
    for (const { capacity } of shared.filter((rule) => rule.cluster === cluster)) {
      const counted = Object.entries(resources).filter(([name]) => Object.hasOwn(capacity, name));
      most = Math.min(most, concurrency(capacity, Object.fromEntries(counted)));
    }
    return ranks.count > most ? { name: "ranks", asked: ranks.count, has: most } : undefined;
  };

  /** A job of its own is as large as its manager's nodes, whatever pilots are. */
  const checkJob = (group: GroupSpec, resources: Resources, task: string): void => {
    const { name, queues } = clusterNamed(clusters, group.cluster);
    const description = described(name);
    if (description === undefined) return;
    const queue = group.queue === undefined ? [...queues.values()][0] : queues.get(group.queue);
    const partition = partitionOf(group.job?.keys ?? {}, queue);
    const lack = jobShortage(description, { resources, ranks: group.ranks, partition });
    if (lack === undefined) return;
    const whole = `${lack.partition === undefined ? "" : `partition ${lack.partition} of `}cluster ${name}`;
    throw new SlipwayError("job-cannot-fit", {
      task,
      resource: lack.name,
      amount: amountOf(lack.name, lack.asked),
      largest: amountOf(lack.name, lack.has),
      place: isOfNodes(lack.name) ? whole : `a node of ${whole}`,
    });
  };

  const isBatchJob = (group: GroupSpec): boolean =>
    group.job !== undefined && clusterNamed(clusters, group.cluster).manager.batch !== undefined;

  const checkFits: FitCheck["checkFits"] = (group, asked, task) => {
    const { cluster, node } = targetOf(group);
    if (isBatchJob(group)) return checkJob(group, asked, task);
    const { resources } = group.redirect === undefined ? { resources: asked } : shapeOf(group, asked);
    const lack =
      shortage(node, { resources }) ??
      tooFewNodes(group, resources, cluster, node) ??
      tooManyRanks(group, resources, cluster);
    if (lack === undefined) return;
    throw new SlipwayError("cannot-fit", {
      task,
      resource: lack.name,
      amount: amountOf(lack.name, lack.asked),
      largest: amountOf(lack.name, lack.has),
    });
  };

  const checkQueue = (group: GroupSpec, queue: string): void => {
    const cluster = clusterNamed(clusters, group.cluster);
    if (cluster.queues.has(queue)) return;
    throw new SlipwayError("bad-value", {
      where: `tasks.${group.name}`,
      key: "queue",
      detail: `cluster '${cluster.name}' has no queue '${queue}'`,
      remedy: `Its queues: ${[...cluster.queues.keys()].join(", ")}.`,
    });
  };

  return {
    checkFits,
    checkAttempts,
    checkSpec: (spec) => {
      for (const group of spec.groups) {
        for (const dependency of group.after)
          if ("run" in dependency && !state.runs.has(dependency.run) && !state.archived.has(dependency.run))
            throw new SlipwayError("no-such-run", { run: dependency.run });
        if (group.queue !== undefined) checkQueue(group, group.queue);
        if (group.itemResources === undefined)
          checkAttempts(group, resourcesByAttempt(group, group.resources, undefined, false), `'${group.name}'`);
        // what each of its tasks asks for is known only with its items
        else targetOf(group);
      }
    },
  };
};
