import type { RankSpec } from "../core/spec.ts";
import type { AgentId } from "../core/ids.ts";

/** Where the ranks of one task go: agents of one pilot, all of them or none. Pure. */

export interface RankRoom {
  readonly agent: AgentId;
  readonly host?: string | undefined;
  /** How many ranks fit there. */
  readonly room: number;
}

export interface RankPlacement {
  /** The first is the head. */
  readonly agents: readonly number[];
  readonly ranks: readonly number[];
}

interface Chosen {
  readonly agent: AgentId;
  readonly host?: string | undefined;
  readonly ranks: number;
}

/** n2 before n10, as managers order their nodes. */
const { compare } = new Intl.Collator("en", { numeric: true });

/** In the order of their hosts, which the manager's own launchers use too; the first is the head. */
const inOrder = (chosen: readonly Chosen[]): RankPlacement => {
  const sorted = chosen.toSorted((a, b) => compare(a.host ?? "", b.host ?? "") || a.agent - b.agent);
  return { agents: sorted.map(({ agent }) => agent), ranks: sorted.map(({ ranks }) => ranks) };
};

/** That many nodes, evenly: if it does not divide evenly, the first ones get one rank more. The tightest fits first. */
const spread = (rooms: readonly RankRoom[], count: number, nodes: number): RankPlacement | undefined => {
  const least = Math.floor(count / nodes);
  const more = count % nodes;
  if (least === 0) return undefined;
  const chosen: Chosen[] = [];
  const rising = rooms.filter(({ room }) => room >= least).toSorted((a, b) => a.room - b.room);
  const large = rising.filter(({ room }) => room > least).slice(0, more);
  if (large.length < more) return undefined;
  for (const { agent, host } of large) chosen.push({ agent, host, ranks: least + 1 });
  for (const { agent, host } of rising) {
    if (chosen.length === nodes) break;
    if (!large.some((taken) => taken.agent === agent)) chosen.push({ agent, host, ranks: least });
  }
  return chosen.length === nodes ? inOrder(chosen) : undefined;
};

/** On as few nodes as possible: those with the most room first. */
const gather = (rooms: readonly RankRoom[], count: number): RankPlacement | undefined => {
  const chosen: Chosen[] = [];
  let left = count;
  for (const { agent, host, room } of rooms.toSorted((a, b) => b.room - a.room)) {
    if (left === 0 || room <= 0) break;
    chosen.push({ agent, host, ranks: Math.min(room, left) });
    left -= Math.min(room, left);
  }
  return left === 0 ? inOrder(chosen) : undefined;
};

/** Undefined if they do not all fit on these agents of one pilot. */
export const placeRanks = (ask: RankSpec, rooms: readonly RankRoom[]): RankPlacement | undefined =>
  ask.nodes === undefined ? gather(rooms, ask.count) : spread(rooms, ask.count, ask.nodes);
