import type { Pilot } from "../core/state.ts";
import type { Companion } from "./companion.ts";
import type { KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import type { FleetNotes } from "./notes.ts";

/**
 * How seldom a cluster may be looked at. One at rest is looked at only because something may have been missed: whatever
 * ends its rest (work, an agent that comes, falls silent or goes) asks for a look.
 */

/** It has no pilots and no jobs, none that there must be, and there is no work that could want some. */
const EMPTY_MS = 10_000;
/** There is no work, and its pilots wait for some on this machine: their agents are connected, and none is to end soon. */
const QUIET_MS = 5000;
/** Pilots that are to end sooner than that after their last task are looked at as often as ever. */
const LEAST_IDLE_SECONDS = 60;

const isQuiet = ({ agents, roster }: KeeperContext, pilot: Pilot): boolean => {
  const ids = roster.agentsOf(pilot.id);
  const isThere = (id: number): boolean => agents.link(id)?.channel !== undefined;
  return pilot.state === "PMGR_ACTIVE" && ids.length > 0 && ids.every(isThere) && !roster.isDraining(pilot);
};

/** Milliseconds; 0 while there is something to look for. */
export const restMs = (
  fleets: readonly Fleet[],
  context: KeeperContext,
  notesOf: (fleet: Fleet) => FleetNotes,
  companion: Companion | undefined,
): number => {
  const { engine, roster } = context;
  if (companion?.isEmpty(false) === false) return 0;
  if (engine.state.live.size > 0) return 0;
  let rest = EMPTY_MS;
  for (const fleet of fleets) {
    const live = roster.live(fleet);
    if (notesOf(fleet).first || live.length < fleet.policy.min) return 0;
    if (live.length === 0) continue;
    const isHere = fleet.prompt === true && fleet.policy.idle >= LEAST_IDLE_SECONDS;
    if (!isHere || !live.every((pilot) => isQuiet(context, pilot))) return 0;
    rest = QUIET_MS;
  }
  return rest;
};
