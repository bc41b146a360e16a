import type { Shape } from "../core/run.ts";
import { type FitList, createFitList } from "./fit-list.ts";
import type { WaitingRange } from "./waiting.ts";

/** Where tasks may run, and in which order they wait there. */

/** What waits at one place with one priority, in order of arrival. */
export interface Lane {
  readonly place: Place;
  readonly priority: number;
  readonly ranges: FitList<WaitingRange>;
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
  /** The lane of a shape with a priority, made if it does not exist. */
  lane(shape: Shape, priority: number): Lane;
  /** Drops an empty lane, and its place if that was the last one. */
  prune(lane: Lane): void;
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
    lane: (shape, priority) => {
      const place = placeOf(shape);
      let index = 0;
      while (index < place.lanes.length && place.lanes[index]!.priority > priority) index += 1;
      const found = place.lanes[index];
      if (found?.priority === priority) return found;
      const lane: Lane = { place, priority, ranges: createFitList() };
      place.lanes.splice(index, 0, lane);
      return lane;
    },
    prune: (lane) => {
      if (lane.ranges.size > 0) return;
      const { place } = lane;
      place.lanes.splice(place.lanes.indexOf(lane), 1);
      if (place.lanes.length === 0) places.delete(place.key);
    },
  };
};
