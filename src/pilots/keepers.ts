import { type LongTimer, repeatTimer } from "../long-timer.ts";
import type { ClusterKeeper } from "./cluster-keeper.ts";
import type { Fleet } from "./fleet.ts";

/** The keepers of all clusters, each with its own rhythm; clusters come, change and go. */
export interface Keepers {
  all(): readonly ClusterKeeper[];
  fleets(): readonly Fleet[];
  of(cluster: string): ClusterKeeper | undefined;
  /** Asks the keeper of a queue's fleet; undefined if there is no such fleet. */
  ofFleet<T>(cluster: string, queue: string, ask: (keeper: ClusterKeeper, fleet: Fleet) => T): T | undefined;
  /** The fleets of some clusters as they are written now; a cluster without any has gone. */
  change(clusters: Iterable<string>, next: readonly Fleet[]): void;
  /** From now on each is looked at in its rhythm. */
  begin(): void;
  /** Their rhythms may be others now. */
  keepTime(): void;
  close(): void;
}

export const createKeepers = (
  declared: readonly Fleet[],
  make: (cluster: string, fleets: readonly Fleet[]) => ClusterKeeper,
  look: (keeper: ClusterKeeper) => void,
): Keepers => {
  const keepers: ClusterKeeper[] = [];
  const rhythms = new Map<ClusterKeeper, { readonly ms: number; readonly timer: LongTimer }>();
  let begun = false;

  const of = (cluster: string): ClusterKeeper | undefined => keepers.find((each) => each.cluster === cluster);

  const keepTime = (): void => {
    if (!begun) return;
    for (const [keeper, { ms, timer }] of rhythms)
      if (!keepers.includes(keeper) || keeper.periodMs !== ms) {
        timer.stop();
        rhythms.delete(keeper);
      }
    for (const keeper of keepers) {
      const ms = keeper.periodMs;
      if (!rhythms.has(keeper)) rhythms.set(keeper, { ms, timer: repeatTimer(ms, () => look(keeper)) });
    }
  };

  const change: Keepers["change"] = (clusters, next) => {
    for (const cluster of clusters) {
      const fleets = next.filter((fleet) => fleet.cluster === cluster);
      const keeper = of(cluster);
      if (keeper === undefined) {
        if (fleets.length > 0) keepers.push(make(cluster, fleets));
      } else if (fleets.length > 0) keeper.change(fleets);
      else keepers.splice(keepers.indexOf(keeper), 1);
    }
    keepTime();
  };
  change(new Set(declared.map(({ cluster }) => cluster)), declared);

  return {
    all: () => keepers,
    fleets: () => keepers.flatMap(({ fleets }) => fleets),
    of,
    ofFleet: (cluster, queue, ask) => {
      const keeper = of(cluster);
      const fleet = keeper?.fleets.find((each) => each.queue === queue);
      return keeper === undefined || fleet === undefined ? undefined : ask(keeper, fleet);
    },
    change,
    begin: () => {
      begun = true;
      keepTime();
    },
    keepTime,
    close: () => {
      begun = false;
      for (const { timer } of rhythms.values()) timer.stop();
    },
  };
};
