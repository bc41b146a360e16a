import { join } from "node:path";
import { combineClusters } from "../config/clusters-file.ts";
import { digestsOf, overridesOf } from "../config/effective.ts";
import { type LiveClusters, liveClusters } from "../config/live-clusters.ts";
import { type ClustersLocation, loadLayers } from "../config/load-clusters.ts";
import type { State } from "../core/state.ts";
import { SlipwayError } from "../errors.ts";
import { replayState } from "../archive/compact.ts";
import type { Counts } from "./counts.ts";
import { type Feed, createFeed } from "./feed.ts";
import { type HomeClaim, type Keys, claimHome, loadKeys } from "../home/index.ts";
import { type Journal, type Reserve, openJournal, nodeIo, openReserve, reserveFile } from "../journal/index.ts";
import { checkShared } from "../launch/service/shared-roots.ts";
import type { Log } from "./logger.ts";
import { refusedMoves } from "./refused-moves.ts";

/** The home: claimed for this process, with its configuration and keys; and what its journal says about the past. */
export interface Home {
  readonly root: string;
  readonly claim: HomeClaim;
  /** Where the clusters were read. */
  readonly location: ClustersLocation;
  readonly clusters: LiveClusters;
  /** What of it a project overrides: a digest by cluster. */
  readonly overrides: Readonly<Record<string, string>>;
  readonly keys: Keys;
}

export interface OpenHomeOptions {
  readonly root: string;
  readonly location: ClustersLocation;
  readonly log: Log;
  /** Another server holds it: this one must end. */
  readonly onLost: (reason: string) => void;
}

export const openHome = async ({ root, location, log, onLost }: OpenHomeOptions): Promise<Home> => {
  const claim = await claimHome(root, {
    onWait: ({ host, pid, ms }) =>
      log(`the home is held by pid ${pid} on ${host}; waiting ${ms / 1000} s to see whether it lives`),
  });
  claim.onLost(onLost);
  const { layers, keys: known } = await loadLayers(location);
  const clusters = liveClusters(combineClusters(layers, known));
  await checkShared(root, clusters);
  const keys = await loadKeys(root);
  for (const warning of [...keys.warnings, ...clusters.warnings]) log(warning);
  for (const { name, manager, own } of clusters.clusters.values())
    for (const notice of manager.notices?.(own) ?? []) log(`cluster ${name}: ${notice}`);
  return { root, claim, location, clusters, overrides: digestsOf(overridesOf(layers)), keys };
};

/** The state from the journal, and the journal itself, open for writing. */
export interface Stored {
  readonly journal: Journal;
  readonly reserve: Reserve;
  readonly state: State;
  readonly feed: Feed;
}

/** Replays the journal and opens it for writing. */
export const openState = async ({ root, claim, clusters }: Home, counts: Counts, log: Log): Promise<Stored> => {
  let journal: Journal | undefined;
  const reserve = await openReserve({ disk: reserveFile(join(root, "journal", "reserve")), log });
  // a replay that starts over needs a new feed
  let feed = createFeed();
  const state = await replayState(
    root,
    async (replay) => {
      journal = await openJournal(
        {
          dir: join(root, "journal"),
          io: counts.timed(nodeIo),
          epoch: claim.epoch,
          fence: () => claim.fence(),
          keepHistory: clusters.keepHistory,
          reserve,
        },
        replay,
      );
    },
    { losses: clusters.limits.losses, feed: () => (feed = createFeed()) },
  );
  if (state.refused.count > 0) log(refusedMoves(state, "replay"));
  if (journal === undefined) throw new SlipwayError("internal", { detail: "the journal did not open" });
  for (const warning of journal.warnings) log(warning);
  // before any task can write, and without making anyone wait
  void reserve.fill();
  return { journal, reserve, state, feed };
};
