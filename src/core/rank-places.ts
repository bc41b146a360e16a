import type { Row } from "./ids.ts";
import type { Run } from "./run.ts";

/**
 * Where the ranks of latest attempts are, or were: which agents, and how many ranks each had. Few sets of agents serve
 * many tasks, so that a row costs four bytes.
 */
export interface RankPlace {
  /** The head first. */
  readonly agents: readonly number[];
  readonly ranks: readonly number[];
}

export interface RankPlaces {
  /** A row's number is one more than its place's position here; 0: none. */
  readonly sets: RankPlace[];
  readonly ids: Map<string, number>;
  readonly pages: Map<number, Uint32Array>;
}

export const noPlaces = (): RankPlaces => ({ sets: [], ids: new Map(), pages: new Map() });

const keyOf = ({ agents, ranks }: RankPlace): string => `${agents.join(" ")}/${ranks.join(" ")}`;

const numberOf = ({ sets, ids }: RankPlaces, place: RankPlace): number => {
  const key = keyOf(place);
  let id = ids.get(key);
  if (id === undefined) ids.set(key, (id = sets.push({ agents: [...place.agents], ranks: [...place.ranks] })));
  return id;
};

type Rows = Pick<Run, "table" | "places">;

export const setPlace = ({ table, places }: Rows, row: Row, place: RankPlace): void => {
  const index = Math.floor(row / table.pageRows);
  let page = places.pages.get(index);
  if (page === undefined) places.pages.set(index, (page = new Uint32Array(table.pageRows)));
  page[row % table.pageRows] = numberOf(places, place);
};

export const placeOf = ({ table, places }: Rows, row: Row): RankPlace | undefined =>
  places.sets[(places.pages.get(Math.floor(row / table.pageRows))?.[row % table.pageRows] ?? 0) - 1];

/** From a snapshot. */
export const restorePlaces = (places: RankPlaces, sets: readonly RankPlace[]): void => {
  for (const place of sets) numberOf(places, place);
};
