import type { ClustersConfig } from "../config/clusters-file.ts";
import type { LargestMemory } from "../core/memory-retry.ts";
import { amountOf, FRACTION, type Resources } from "../core/resources.ts";
import type { GroupSpec } from "../core/spec.ts";
import type { Agent, State } from "../core/state.ts";
import { knownOf } from "./largest.ts";
import { declaredBy } from "./pilot-job.ts";

/**
 * The most memory that a pilot can give a task: what its queues declare, what nodes of theirs have had, and what the
 * node has that ran it. A queue that leaves its memory to the manager has no bound that could be asked for.
 */
export interface LargestMemoryOptions {
  readonly state: Pick<State, "agents" | "pilots">;
  readonly clusters: ClustersConfig;
  /** What the largest node of each usable cluster offers. */
  readonly largest: ReadonlyMap<string, Resources>;
}

/** For a task about which nothing is known on a cluster about which nothing is known. */
const UNKNOWN_PER_CPU = 2 ** 31;

/** What comes with the cores of a task: its share of a node's memory. */
export const createMemoryShare =
  ({ clusters, largest }: Pick<LargestMemoryOptions, "clusters" | "largest">) =>
  (spec: GroupSpec): number => {
    const node = knownOf(largest.get(spec.cluster ?? clusters.default) ?? {});
    const [mem, cpus] = [amountOf(node, "mem"), amountOf(node, "cpus")];
    const asked = Math.max(amountOf(spec.resources, "cpus"), 1);
    if (mem === 0 || cpus === 0) return Math.ceil((UNKNOWN_PER_CPU * Math.max(asked, FRACTION)) / FRACTION);
    return Math.max(1, Math.floor(mem * Math.min(1, asked / cpus)));
  };

export const createLargestMemory = ({ state, clusters, largest }: LargestMemoryOptions): LargestMemory => {
  const declared = (name: string, queue: string | undefined): number => {
    const of = queue === undefined ? undefined : clusters.clusters.get(name)?.queues.get(queue);
    const own = of === undefined ? 0 : amountOf(declaredBy(of), "mem");
    return own > 0 ? own : amountOf(knownOf(largest.get(name) ?? {}), "mem");
  };

  const serves = (agent: Agent, name: string, queue: string | undefined): boolean => {
    const pilot = state.pilots.get(agent.pilot);
    const at = pilot?.cluster ?? agent.cluster ?? clusters.default;
    return at === name && (queue === undefined || queue === (pilot?.queue ?? agent.queue ?? queue));
  };

  /** Ranks share the nodes of one pilot: each gets its part of a node. */
  const perNode = ({ ranks, queue }: GroupSpec, name: string): number => {
    if (ranks === undefined) return 1;
    const queues = [...(clusters.clusters.get(name)?.queues.values() ?? [])];
    const most = Math.max(1, ...queues.filter((each) => (queue ?? each.name) === each.name).map(({ nodes }) => nodes));
    return Math.ceil(ranks.count / (ranks.nodes ?? most));
  };

  return (spec, agent) => {
    const name = spec.cluster ?? clusters.default;
    let bytes = Math.max(declared(name, spec.queue), amountOf(state.agents.get(agent)?.resources ?? {}, "mem"));
    for (const each of state.agents.values())
      if (serves(each, name, spec.queue)) bytes = Math.max(bytes, amountOf(each.resources, "mem"));
    return Math.floor(bytes / perNode(spec, name));
  };
};
