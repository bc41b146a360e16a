import { absenceOf } from "../check/absence.ts";
import type { Standing, Standings } from "../check/standings.ts";
import type { ClusterConfig } from "../config/clusters-file.ts";
import type { State } from "../core/state.ts";
import { isFinalPilot } from "../core/states.ts";

/** What becomes of the tasks of a cluster that cannot be used. */
export interface Fallback {
  /** Why tasks that are submitted now run on this machine; undefined: they go to their cluster, or wait for it. */
  whyHere(cluster: ClusterConfig): Promise<string | undefined>;
  /** Where the tasks of a cluster in trouble go, as far as is known. */
  goTo(cluster: ClusterConfig, standing: Standing): "local" | "wait";
}

/**
 * An agent of it was here once, of a pilot or started by hand: the cluster works, and whatever is wrong now will pass.
 */
const hasWorked = (state: State, cluster: string, defaultCluster: string): boolean =>
  [...state.pilots.values()].some((pilot) => pilot.cluster === cluster && pilot.active > 0) ||
  [...state.agents.values()].some(
    (agent) => !state.pilots.has(agent.pilot) && (agent.cluster ?? defaultCluster) === cluster,
  );

/** Whether a queue has agents, or pilots on their way. */
export const createServed =
  (state: State, defaultCluster: string) =>
  (cluster: string, queue: string): boolean =>
    [...state.pilots.values()].some(
      (pilot) => pilot.cluster === cluster && pilot.queue === queue && !isFinalPilot(pilot.state),
    ) ||
    [...state.agents.values()].some(
      (agent) =>
        agent.ended === 0 &&
        !state.pilots.has(agent.pilot) &&
        agent.taskJob === undefined &&
        (agent.cluster ?? defaultCluster) === cluster &&
        (agent.queue ?? queue) === queue,
    );

export const createFallback = (state: State, standings: Standings, defaultCluster: string): Fallback => {
  const goTo: Fallback["goTo"] = ({ name, fallback }, standing) => {
    if (fallback !== undefined) return fallback;
    return standing.state === "absent" && !hasWorked(state, name, defaultCluster) ? "local" : "wait";
  };

  return {
    goTo,
    whyHere: async (cluster) => {
      if (cluster.manager.batch === undefined || cluster.fallback === "wait") return undefined;
      // files may have come or gone since the last try
      const absence = await absenceOf(cluster);
      if (absence === undefined) standings.filesCame(cluster.name);
      const standing: Standing | null | undefined =
        absence === undefined ? standings.of(cluster.name) : { state: "absent", since: 0, ...absence };
      return standing != null && goTo(cluster, standing) === "local" ? standing.cause : undefined;
    },
  };
};
