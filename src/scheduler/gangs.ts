import type { RankSpec } from "../core/spec.ts";

/** Where the ranks of one task go: agents of one pilot, all of them or none. Pure. */

export interface RankRoom {
  readonly agent: number;
  /** How many ranks fit there. */
  readonly room: number;
}

export interface RankPlacement {
  /** The first is the head. */
  readonly agents: readonly number[];
  readonly ranks: readonly number[];
}

const byAgent = (chosen: readonly { agent: number; ranks: number }[]): RankPlacement => {
  const sorted = chosen.toSorted((a, b) => a.agent - b.agent);
  return { agents: sorted.map(({ agent }) => agent), ranks: sorted.map(({ ranks }) => ranks) };
};

/** So many nodes, evenly: the first ones get one rank more where it does not come out even. The tightest fits first. */
const spread = (rooms: readonly RankRoom[], count: number, nodes: number): RankPlacement | undefined => {
  const least = Math.floor(count / nodes);
  const more = count % nodes;
  if (least === 0) return undefined;
  const chosen: { agent: number; ranks: number }[] = [];
  const rising = rooms.filter(({ room }) => room >= least).toSorted((a, b) => a.room - b.room);
  const large = rising.filter(({ room }) => room > least).slice(0, more);
  if (large.length < more) return undefined;
  for (const { agent } of large) chosen.push({ agent, ranks: least + 1 });
  for (const { agent } of rising) {
    if (chosen.length === nodes) break;
    if (!large.some((taken) => taken.agent === agent)) chosen.push({ agent, ranks: least });
  }
  return chosen.length === nodes ? byAgent(chosen) : undefined;
};

/** On as few nodes as possible: those with the most room first. */
const gather = (rooms: readonly RankRoom[], count: number): RankPlacement | undefined => {
  const chosen: { agent: number; ranks: number }[] = [];
  let left = count;
  for (const { agent, room } of rooms.toSorted((a, b) => b.room - a.room)) {
    if (left === 0 || room <= 0) break;
    chosen.push({ agent, ranks: Math.min(room, left) });
    left -= Math.min(room, left);
  }
  return left === 0 ? byAgent(chosen) : undefined;
};

/** Undefined if they do not all fit among these agents, which are of one pilot. */
export const placeRanks = (ask: RankSpec, rooms: readonly RankRoom[]): RankPlacement | undefined =>
  ask.nodes === undefined ? gather(rooms, ask.count) : spread(rooms, ask.count, ask.nodes);
