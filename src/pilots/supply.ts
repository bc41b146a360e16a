import type { Pilot } from "../core/state.ts";
import { lifetimeOf } from "../fleet/lifetimes.ts";
import type { FleetSnapshot, Supply } from "../fleet/snapshot.ts";
import type { KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import type { FleetNotes } from "./notes.ts";
import type { PilotId } from "../core/ids.ts";

/** The pilots of a fleet as its strategy sees them. */

/** Pilots are replaced at most this long before they take nothing new, however long others wait in the manager. */
const LONGEST_LEAD = 600;

type Lasting = Pick<Fleet, "walltime" | "signal" | "signalBefore" | "policy">;

/** Seconds that a task has on a pilot that has just started. */
export const freshSeconds = (fleet: Lasting): number => {
  const signalMs = lifetimeFor(fleet, 0)?.signalMs;
  return signalMs === undefined || signalMs === null ? Infinity : signalMs / 1000;
};

const lifetimeFor = (fleet: Lasting, pilot: PilotId) =>
  lifetimeOf(pilot, {
    walltime: fleet.walltime,
    lifetime: fleet.policy.lifetime,
    stagger: fleet.policy.stagger,
    signal: fleet.signal,
    signalBefore: fleet.signalBefore,
  });

export const supplyOf = (
  { engine, agents, roster }: KeeperContext,
  fleet: Fleet,
  notes: FleetNotes,
  hasLostAgents: (pilot: Pilot) => boolean,
): Pick<FleetSnapshot, "pilots" | "idleSeconds"> => {
  const now = performance.now();
  const seen = new Set<number>();

  const idleSince = (pilot: PilotId, busy: boolean): number => {
    if (busy) {
      notes.idleSince.delete(pilot);
      return 0;
    }
    const since = notes.idleSince.get(pilot) ?? now;
    notes.idleSince.set(pilot, since);
    return (now - since) / 1000;
  };

  const describe = (pilot: Pilot): Supply | undefined => {
    seen.add(pilot.id);
    const ids = roster.agentsOf(pilot.id);
    const pending = ids.length === 0;
    let used = 0;
    let occupancy = 0;
    for (const id of ids) {
      const load = engine.scheduler.occupancyOf(id, fleet.policy.unknownTaskDuration);
      used += load.used / fleet.nodes;
      occupancy += load.seconds / fleet.nodes;
    }
    const idleSeconds = idleSince(pilot.id, pending || used > 0);
    if (roster.isDraining(pilot) || hasLostAgents(pilot)) return undefined;
    const ends = Math.min(...ids.map((id) => agents.link(id)?.endsAt ?? Infinity));
    const terms = roster.termsOf(fleet, pilot);
    const remaining = pending ? freshSeconds(terms) : (ends - engine.clock()) / 1000;
    // replaced this long before its end: as long as others waited in the manager
    const life = lifetimeFor(terms, pilot.id);
    const drainsBefore = life?.signalMs === null || life === undefined ? 0 : (life.signalMs - life.drainMs) / 1000;
    if (!pending && remaining - drainsBefore < Math.min(notes.queueWait, LONGEST_LEAD)) return undefined;
    return { id: pilot.id, pending, used, occupancy, idleSeconds, remaining };
  };

  const pilots = roster
    .live(fleet)
    .map(describe)
    .filter((each) => each !== undefined);
  for (const pilot of notes.idleSince.keys()) if (!seen.has(pilot)) notes.idleSince.delete(pilot);
  if (pilots.some(({ used }) => used > 0)) notes.fleetIdleSince = undefined;
  else notes.fleetIdleSince ??= now;
  return { pilots, idleSeconds: notes.fleetIdleSince === undefined ? 0 : (now - notes.fleetIdleSince) / 1000 };
};
