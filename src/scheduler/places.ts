import type { Shape } from "../core/run.ts";
import { type Standing, standsBefore } from "./batch.ts";
import { type FitList, createFitList } from "./fit-list.ts";
import type { Shelf } from "./shelf.ts";

/** Where tasks may run, and in which order they wait there. */

/** What waits at one place with one priority, in order, by bucket. */
export interface Lane {
  readonly place: Place;
  readonly priority: number;
  readonly shelves: FitList<Shelf, Standing>;
  readonly byBucket: Map<string, Shelf>;
}

/** Tasks that name the same cluster and queue, or none; tasks with ranks are kept apart. */
export interface Place {
  readonly key: string;
  readonly cluster: string | undefined;
  readonly queue: string | undefined;
  readonly gangs: boolean;
  /** Highest priority first; none is empty. */
  readonly lanes: Lane[];
}

export interface Places {
  values(): Iterable<Place>;
  shelves(): Iterable<Shelf>;
  /** The lane of a shape with a priority, made if it does not exist. */
  lane(shape: Shape, priority: number): Lane;
  /** Drops a shelf without batches, its lane if it was the last one there, and so on. */
  prune(shelf: Shelf): void;
}

export const createPlaces = (): Places => {
  const places = new Map<string, Place>();

  const placeOf = ({ cluster, queue, ranks }: Shape): Place => {
    const gangs = ranks !== undefined;
    const key = `${gangs ? "g" : "s"}/${cluster ?? ""}/${queue ?? ""}`;
    let place = places.get(key);
    if (place === undefined) places.set(key, (place = { key, cluster, queue, gangs, lanes: [] }));
    return place;
  };

  return {
    values: () => places.values(),
    *shelves() {
      for (const { lanes } of places.values()) for (const { shelves } of lanes) yield* shelves;
    },
    lane: (shape, priority) => {
      const place = placeOf(shape);
      let index = 0;
      while (index < place.lanes.length && place.lanes[index]!.priority > priority) index += 1;
      const found = place.lanes[index];
      if (found?.priority === priority) return found;
      const shelves = createFitList<Shelf, Standing>(standsBefore);
      const lane: Lane = { place, priority, shelves, byBucket: new Map() };
      place.lanes.splice(index, 0, lane);
      return lane;
    },
    prune: ({ lane, leaf, tally }) => {
      if (leaf >= 0) return;
      lane.byBucket.delete(tally.bucket.key);
      if (lane.shelves.size > 0) return;
      const { place } = lane;
      place.lanes.splice(place.lanes.indexOf(lane), 1);
      if (place.lanes.length === 0) places.delete(place.key);
    },
  };
};
