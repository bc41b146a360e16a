import { join } from "node:path";
import type { Agent, Pilot } from "../core/state.ts";
import { isFinalPilot } from "../core/states.ts";
import type { Agents } from "../agent-links/agents.ts";
import type { Engine } from "../server/engine.ts";
import type { Fleet } from "./fleet.ts";
import type { PilotId } from "../core/ids.ts";

/** Who is there: the pilots of a fleet and the agents of a pilot, according to the state and the connections. */
export interface Roster {
  live(fleet: Fleet): Pilot[];
  /** Agents of a pilot that were not given up. */
  agentsOf(pilot: PilotId): number[];
  everJoined(pilot: PilotId): boolean;
  /** It was asked to take nothing new, or its agents report that they drain. */
  isDraining(pilot: Pilot): boolean;
  /** What a node has: what the queue declares, and for the rest what the last agent of this fleet reported. */
  offerOf(fleet: Fleet): Agent["resources"] | undefined;
  /** Whether an agent of this fleet has reported it. */
  isTold(fleet: Fleet): boolean;
  directoryOf(fleet: Fleet, pilot: Pick<Pilot, "id" | "jobName">): string;
  /** The fleet is about to become another: its living pilots keep what they were started with. */
  keepTerms(fleet: Fleet): void;
  /** The fleet as it was when the pilot was started, as far as this server knows. */
  termsOf(fleet: Fleet, pilot: Pick<Pilot, "id">): Fleet;
  change(
    pilot: PilotId,
    to: Pilot["state"],
    facts?: { nativeId?: string; reason?: string; output?: string; draining?: boolean },
  ): number;
}

export const createRoster = (home: string, engine: Engine, agents: Agents): Roster => {
  const { state } = engine;
  /** Pilots and agents are numbered in order, so each look only covers those that are new since the last. */
  const members = new Map<number, Agent[]>();
  const living = new Map<string, Set<Pilot>>();
  const offers = new Map<string, Agent["resources"]>();
  let nextAgent = 1;
  let nextPilot = 1;

  const keyOf = ({ cluster, queue }: { cluster: string; queue: string }): string => JSON.stringify([cluster, queue]);

  const catchUp = (): void => {
    for (; nextPilot < state.nextPilot; nextPilot += 1) {
      const pilot = state.pilots.get(nextPilot);
      if (pilot === undefined || isFinalPilot(pilot.state)) continue;
      const key = keyOf(pilot);
      living.set(key, (living.get(key) ?? new Set()).add(pilot));
    }
    for (; nextAgent < state.nextAgent; nextAgent += 1) {
      const agent = state.agents.get(nextAgent);
      if (agent === undefined) continue;
      const list = members.get(agent.pilot) ?? [];
      list.push(agent);
      members.set(agent.pilot, list);
      const pilot = state.pilots.get(agent.pilot);
      if (pilot !== undefined) offers.set(keyOf(pilot), agent.resources);
    }
  };

  const membersOf = (pilot: PilotId): readonly Agent[] => {
    catchUp();
    return members.get(pilot) ?? [];
  };

  const agentsOf = (pilot: PilotId): number[] =>
    membersOf(pilot)
      .filter(({ ended }) => ended === 0)
      .map(({ id }) => id);

  const live = (fleet: Fleet): Pilot[] => {
    catchUp();
    const pilots = living.get(keyOf(fleet));
    if (pilots === undefined) return [];
    for (const pilot of pilots) if (isFinalPilot(pilot.state)) pilots.delete(pilot);
    return [...pilots];
  };

  const terms = new Map<PilotId, Fleet>();
  const termsOf = (fleet: Fleet, { id }: Pick<Pilot, "id">): Fleet => terms.get(id) ?? fleet;

  return {
    live,
    termsOf,
    keepTerms: (fleet) => {
      for (const id of terms.keys()) if (isFinalPilot(state.pilots.get(id)?.state ?? "DONE")) terms.delete(id);
      const now = { ...fleet };
      for (const { id } of live(fleet)) if (!terms.has(id)) terms.set(id, now);
    },
    agentsOf,
    everJoined: (pilot) => membersOf(pilot).length > 0 || state.pilots.get(pilot)?.state === "PMGR_ACTIVE",
    isDraining: (pilot) =>
      pilot.draining === true || agentsOf(pilot.id).some((id) => agents.link(id)?.draining === true),
    offerOf: (fleet) => {
      catchUp();
      const told = offers.get(keyOf(fleet));
      return told === undefined ? fleet.offer : { ...told, ...fleet.offer };
    },
    isTold: (fleet) => {
      catchUp();
      return offers.has(keyOf(fleet));
    },
    directoryOf: (fleet, pilot) =>
      termsOf(fleet, pilot).directoryOf?.(pilot.jobName) ?? join(home, "jobs", pilot.jobName),
    change: (pilot, to, facts = {}) =>
      engine.commit({ type: "pilot.changed", at: engine.clock(), pilot, state: to, ...facts }),
  };
};
