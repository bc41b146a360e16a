import type { Pilot } from "../../core/state.ts";
import type { KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import type { PilotCancels } from "./pilot-cancels.ts";
import type { PilotEnds } from "./pilot-ends.ts";
import type { PilotStarts } from "./pilot-starts.ts";

/** How pilots of a cluster are let go: drained when they have agents, cancelled when they are not wanted or no use any more. */
export interface LettingGo {
  /** Takes nothing new and ends when it is empty. */
  drain(pilot: Pilot, reason: string): void;
  cancel(pilots: readonly Pilot[], reason: string): Promise<void>;
  /** It had agents, has none any more, and its job goes on all the same, as on a dead node that nobody noticed. */
  isSpent(pilot: Pilot): boolean;
  /** Cancels jobs that were told to end and did not, those that cannot start, and those that have lost their agents for good. */
  clearAway(): Promise<void>;
  /** One more step towards no pilots at all: what still runs is drained, what nobody holds is cancelled. */
  windDown(stop: Stop): Promise<void>;
}

/** The server stops: gently, or now. */
export interface Stop {
  readonly now: boolean;
  readonly since: number;
}

/** After `down --now`, what has not ended by itself in this time is cancelled again. */
const STUBBORN_MS = 15_000;
/** A job that goes on without agents for so long is ended. */
const SPENT_MS = 60_000;

export const createLettingGo = (
  { agents, roster }: Pick<KeeperContext, "agents" | "roster">,
  fleets: readonly Fleet[],
  { starts, ends, cancels }: { readonly starts: PilotStarts; readonly ends: PilotEnds; readonly cancels: PilotCancels },
): LettingGo => {
  const spentSince = new Map<number, number>();
  const live = (): Pilot[] => fleets.flatMap((fleet) => roster.live(fleet));

  const isSpent = (pilot: Pilot): boolean =>
    roster.everJoined(pilot.id) && roster.agentsOf(pilot.id).length === 0 && ends.waiting(pilot.id) === null;

  return {
    isSpent,
    drain: (pilot, reason) => {
      roster.change(pilot.id, pilot.state, { draining: true });
      for (const id of roster.agentsOf(pilot.id)) agents.drain(id, false, reason);
    },
    cancel: async (pilots, reason) => {
      for (const pilot of pilots) {
        starts.unwanted.add(pilot.id);
        roster.change(pilot.id, pilot.state, { draining: true, reason });
        for (const id of roster.agentsOf(pilot.id)) agents.drain(id, true, reason);
      }
      await cancels.cancel(pilots);
    },
    clearAway: async () => {
      const now = performance.now();
      const all = live();
      const spent = new Set(all.filter(isSpent).map(({ id }) => id));
      for (const id of spentSince.keys()) if (!spent.has(id)) spentSince.delete(id);
      for (const id of spent) if (!spentSince.has(id)) spentSince.set(id, now);
      const over = all.filter(
        ({ id }) => starts.unwanted.has(id) || ends.isStuck(id) || now - (spentSince.get(id) ?? now) > SPENT_MS,
      );
      await cancels.cancel(over);
    },
    windDown: async (stop) => {
      const late = performance.now() - stop.since > STUBBORN_MS;
      const doomed: Pilot[] = [];
      for (const pilot of live()) {
        const connected = roster.agentsOf(pilot.id).filter((id) => agents.link(id)?.channel !== undefined);
        for (const id of connected)
          if (agents.link(id)?.draining === false) agents.drain(id, stop.now, "the server stops");
        if (roster.everJoined(pilot.id)) starts.parting.add(pilot.id);
        else starts.unwanted.add(pilot.id);
        if (connected.length === 0 || (stop.now && late)) doomed.push(pilot);
      }
      await cancels.cancel(doomed);
    },
  };
};
