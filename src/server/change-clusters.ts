import type { Descriptions } from "../check/descriptions.ts";
import type { Standings } from "../check/standings.ts";
import type { ClustersConfig } from "../config/clusters-file.ts";
import type { ClustersChange } from "../config/compare-clusters.ts";
import type { LiveClusters } from "../config/live-clusters.ts";
import type { Resources } from "../core/resources.ts";
import type { TaskJobs } from "../jobs/jobs.ts";
import type { TaskQueue } from "../jobs/task-queue.ts";
import { changeProvider } from "../pilots/change-fleets.ts";
import type { Fleet } from "../pilots/fleet.ts";
import { largestOf } from "../pilots/largest.ts";
import type { Pilots } from "../pilots/pilots.ts";
import type { Engine } from "./engine.ts";

/** Takes over clusters that were read again: everything behind the doors that was made from them. */

export interface ChangeOptions {
  readonly clusters: LiveClusters;
  /** What the largest node of each usable cluster offers. */
  readonly largest: Map<string, Resources>;
  readonly fleetsOf: (declared: ClustersConfig) => readonly Fleet[];
  readonly queuesOf: (declared: ClustersConfig, fleets: readonly Fleet[]) => readonly TaskQueue[];
  readonly pilots: Pilots;
  readonly jobs: TaskJobs;
  readonly descriptions: Descriptions;
  readonly standings: Standings;
  readonly engine: Pick<Engine, "schedulePass">;
}

export const createChangeClusters =
  ({ clusters, largest, fleetsOf, queuesOf, pilots, jobs, descriptions, standings, engine }: ChangeOptions) =>
  ({ config, touched, reached }: ClustersChange): void => {
    const isHere = (name: string): boolean => config.clusters.get(name)?.manager.isHere === true;
    for (const name of touched) {
      const cluster = config.clusters.get(name);
      if (cluster === undefined) largest.delete(name);
      // what is on this machine was detected at the start
      else if (!isHere(name)) largest.set(name, { ...largestOf(cluster), ...cluster.licences });
    }
    const declared = { ...config, clusters: new Map([...config.clusters].filter(([name]) => touched.has(name))) };
    const next = fleetsOf(declared);
    clusters.replace(config);
    for (const { cluster, provider } of pilots.fleets()) {
      const other =
        reached.has(cluster) && !isHere(cluster) ? next.find((each) => each.cluster === cluster) : undefined;
      if (other !== undefined) changeProvider(provider, other.provider);
    }
    jobs.change(touched, queuesOf(declared, next));
    pilots.change(touched, next);
    for (const name of touched) {
      descriptions.forget(name);
      standings.changed(name);
    }
    engine.schedulePass();
  };
