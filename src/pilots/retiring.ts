import type { Pilot } from "../core/state.ts";
import type { KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import type { PilotCancels } from "./pilot-cancels.ts";
import type { PilotEnds } from "./pilot-ends.ts";
import type { PilotStarts } from "./pilot-starts.ts";

/** How pilots of a cluster are let go: drained when they have agents, cancelled when they are unwanted or useless. */
export interface Retiring {
  /** The pilot takes nothing new and ends when empty. */
  drain(pilot: Pilot, reason: string): void;
  cancel(pilots: readonly Pilot[], reason: string): Promise<void>;
  /** It had agents, has none any more, and yet its job continues, as on a dead node that nobody noticed. */
  hasLostAgents(pilot: Pilot): boolean;
  /**
   * Cancels jobs that were asked to end and did not, jobs that cannot start, and jobs that have lost their agents for
   * good.
   */
  clearAway(): Promise<void>;
  /** One more step towards no pilots at all: drains what still runs, and cancels pilots without agents. */
  windDown(stop: Stop): Promise<void>;
}

/** The server stops: gently, or now. */
export interface Stop {
  readonly now: boolean;
  readonly since: number;
}

/** After `down --now`, what has not ended by itself in this time is cancelled again. */
const STUBBORN_MS = 15_000;
/** A job that continues without agents for this long is cancelled. */
const WITHOUT_AGENTS_MS = 60_000;

export const createRetiring = (
  { agents, roster }: Pick<KeeperContext, "agents" | "roster">,
  fleets: readonly Fleet[],
  { starts, ends, cancels }: { readonly starts: PilotStarts; readonly ends: PilotEnds; readonly cancels: PilotCancels },
): Retiring => {
  const withoutAgentsSince = new Map<number, number>();
  const live = (): Pilot[] => fleets.flatMap((fleet) => roster.live(fleet));

  const hasLostAgents = (pilot: Pilot): boolean =>
    roster.everJoined(pilot.id) && roster.agentsOf(pilot.id).length === 0 && ends.waiting(pilot.id) === null;

  return {
    hasLostAgents,
    drain: (pilot, reason) => {
      roster.change(pilot.id, pilot.state, { draining: true });
      for (const id of roster.agentsOf(pilot.id)) agents.drain(id, false, reason);
    },
    cancel: async (pilots, reason) => {
      for (const pilot of pilots) {
        starts.cancelRequested.add(pilot.id);
        roster.change(pilot.id, pilot.state, { draining: true, reason });
        for (const id of roster.agentsOf(pilot.id)) agents.drain(id, true, reason);
      }
      await cancels.cancel(pilots);
    },
    clearAway: async () => {
      const now = performance.now();
      const all = live();
      const without = new Set(all.filter(hasLostAgents).map(({ id }) => id));
      for (const id of withoutAgentsSince.keys()) if (!without.has(id)) withoutAgentsSince.delete(id);
      for (const id of without) if (!withoutAgentsSince.has(id)) withoutAgentsSince.set(id, now);
      const over = all.filter(
        ({ id }) =>
          starts.cancelRequested.has(id) ||
          ends.cannotStart(id) ||
          now - (withoutAgentsSince.get(id) ?? now) > WITHOUT_AGENTS_MS,
      );
      await cancels.cancel(over);
    },
    windDown: async (stop) => {
      const late = performance.now() - stop.since > STUBBORN_MS;
      const toCancel: Pilot[] = [];
      for (const pilot of live()) {
        const connected = roster.agentsOf(pilot.id).filter((id) => agents.link(id)?.channel !== undefined);
        for (const id of connected)
          if (agents.link(id)?.draining === false) agents.drain(id, stop.now, "the server is stopping");
        if (roster.everJoined(pilot.id)) starts.stoppingWithServer.add(pilot.id);
        else starts.cancelRequested.add(pilot.id);
        if (connected.length === 0 || (stop.now && late)) toCancel.push(pilot);
      }
      await cancels.cancel(toCancel);
    },
  };
};
