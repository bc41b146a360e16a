import type { ReloadView, ServerView } from "../api/schemas.ts";
import { combineClusters } from "../config/clusters-file.ts";
import { type ClustersChange, compareClusters } from "../config/compare-clusters.ts";
import { digestsOf, overridesOf } from "../config/effective.ts";
import type { LiveClusters } from "../config/live-clusters.ts";
import { type ClustersLocation, loadLayers, watchedFiles } from "../config/load-clusters.ts";
import { isFinalLaunch } from "../core/launch.ts";
import type { State } from "../core/state.ts";
import { isFinalPilot } from "../core/states.ts";
import { isOver } from "../core/task-job.ts";
import { SlipwayError } from "../errors.ts";
import { repeatTimer } from "../long-timer.ts";
import { watchFiles } from "../watch-files.ts";
import { checkShared } from "../launch/service/shared-roots.ts";
import type { Log } from "./logger.ts";

/**
 * Reads clusters.yaml again, with all its layers, when it changes or somebody asks. What is valid counts from then on;
 * what is not is not looked at, and the server says why until it is mended. Pilots and jobs that live keep what they were
 * started with. A queue or a cluster that something still needs cannot go.
 */
export interface Reload {
  /** Rejects when the files cannot be taken over; then everything stays as it was. */
  now(): Promise<ReloadView>;
  about(): NonNullable<ServerView["clustersFile"]>;
  close(): void;
}

export interface ReloadOptions {
  readonly root: string;
  readonly location: ClustersLocation;
  readonly clusters: LiveClusters;
  readonly state: State;
  readonly clock: () => number;
  /** Makes it so. Must not fail half way: it gets only what was checked. */
  readonly apply: (change: ClustersChange) => void;
  readonly overridden: (digests: Readonly<Record<string, string>>) => void;
  /** What people should know of clusters that were added. */
  readonly warn: (change: ClustersChange) => readonly string[];
  readonly published: (view: ReloadView) => void;
  readonly log: Log;
  readonly lookMs?: number;
}

const AGAIN_MS = 30_000;

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** What still needs a queue, or a cluster. */
const usersOf = (
  state: State,
  defaultCluster: string,
  { cluster, queue }: ClustersChange["gone"][number],
): string[] => {
  const isHere = (each: { readonly cluster: string; readonly queue: string }): boolean =>
    each.cluster === cluster && (queue === undefined || each.queue === queue);
  const pilots = [...state.pilots.values()].filter((pilot) => !isFinalPilot(pilot.state) && isHere(pilot));
  const jobs = [...state.taskJobs.values()].filter((job) => !isOver(job) && isHere(job));
  const launches = [...state.launches.values()].filter(
    (launch) => queue === undefined && !isFinalLaunch(launch.state) && launch.cluster === cluster,
  );
  const runs: string[] = [];
  for (const run of state.live) {
    let open = 0;
    for (const { spec, count, done, failed, canceled } of run.groups) {
      const isMeant = (spec.cluster ?? defaultCluster) === cluster && (queue === undefined || spec.queue === queue);
      if (isMeant) open += count - done - failed - canceled;
    }
    if (open > 0) runs.push(`${plural(open, "task")} of run ${run.id}`);
  }
  const listed = (items: readonly string[]): string[] =>
    items.length > 3 ? [...items.slice(0, 3), `${items.length - 3} more`] : [...items];
  return [
    ...(pilots.length === 0
      ? []
      : [`pilot${pilots.length === 1 ? "" : "s"} ${listed(pilots.map(({ id }) => String(id))).join(", ")}`]),
    ...(jobs.length === 0 ? [] : [plural(jobs.length, "job") + " of tasks"]),
    ...(launches.length === 0 ? [] : [plural(launches.length, "launch").replace("launchs", "launches")]),
    ...listed(runs),
  ];
};

const refuseInUse = (state: State, { default: chosen }: LiveClusters, { gone }: ClustersChange): void => {
  for (const each of gone) {
    const what = each.queue === undefined ? `cluster ${each.cluster}` : `queue ${each.cluster}/${each.queue}`;
    const users = usersOf(state, chosen, each);
    if (each.queue === undefined && each.cluster === chosen) users.unshift("it is the server's default cluster");
    if (users.length > 0) throw new SlipwayError("clusters-in-use", { what, detail: users.join(", ") });
  }
};

export const createReload = (options: ReloadOptions): Reload => {
  const { root, location, clusters, state, log } = options;
  let read = options.clock();
  let problem: string | null = null;
  let later: readonly string[] = [];
  let underway: Promise<unknown> = Promise.resolve();

  const take = async (): Promise<ReloadView> => {
    const { layers, keys } = await loadLayers(location);
    const next = combineClusters(layers, keys);
    await checkShared(root, next);
    const change = compareClusters(clusters, next);
    refuseInUse(state, clusters, change);
    options.apply(change);
    options.overridden(digestsOf(overridesOf(layers)));
    read = options.clock();
    later = change.later;
    return {
      files: [...next.files],
      changes: [...change.changes],
      later: [...change.later],
      warnings: [...next.warnings, ...options.warn(change)],
    };
  };

  const now = async (): Promise<ReloadView> => {
    try {
      const view = await take();
      if (problem !== null) log("clusters.yaml can be read again");
      problem = null;
      for (const text of view.changes) log(`clusters.yaml: ${text}`);
      for (const text of view.later) log(`clusters.yaml: from the next start on: ${text}`);
      for (const text of view.warnings) log(`clusters.yaml: warning: ${text}`);
      if (view.changes.length > 0) options.published(view);
      return view;
    } catch (error) {
      const { message } = error as Error;
      if (problem !== message) log(`clusters.yaml was not taken over, the old one stays: ${message}`);
      problem = message;
      throw error;
    }
  };

  /** One at a time. */
  const inTurn = (): Promise<ReloadView> => {
    const mine = underway.then(now);
    underway = mine.catch(() => undefined);
    return mine;
  };

  const watch = watchFiles(
    () => watchedFiles(location),
    () => void inTurn().catch(() => undefined),
    options.lookMs,
  );

  // what was still needed may have ended, and a file system may be back
  const again = repeatTimer(AGAIN_MS, () => {
    if (problem !== null) void inTurn().catch(() => undefined);
  });

  return {
    now: inTurn,
    about: () => ({
      files: [...clusters.files],
      read: new Date(read).toISOString(),
      problem,
      later: [...later],
      warnings: [...clusters.warnings],
    }),
    close: () => {
      watch.close();
      again.stop();
    },
  };
};
