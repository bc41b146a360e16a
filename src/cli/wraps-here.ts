import type { PilotView, WrapView } from "../api/schemas.ts";
import { isConnectionLost } from "../client/index.ts";
import type { Context } from "./context.ts";

/** Wrappers of a home, which need no server: what they wrote is read here. */
export const wrapsHere = async (home: string): Promise<WrapView[]> =>
  (await import("../wrap/report/view.ts")).wrapViews(home);

/** What a server says; where none runs, undefined if there are wrappers to show all the same. */
export const askServer = async <T>(
  context: Context,
  wraps: readonly WrapView[],
  ask: () => Promise<T>,
): Promise<T | undefined> => {
  try {
    return await ask();
  } catch (error) {
    if (wraps.length === 0 || !isConnectionLost(error)) throw error;
    context.note(error.message);
    return undefined;
  }
};

/** A pilot or job of a wrapper, in the shape of a server's; its number is of that wrapper alone. */
export type WrapPilot = PilotView & { readonly wrap: string; readonly workers: number };

export const pilotsOfWraps = (wraps: readonly WrapView[]): WrapPilot[] =>
  wraps.flatMap((wrap) =>
    wrap.pilots.map((pilot) => {
      const isActive = pilot.state === "PMGR_ACTIVE";
      return {
        id: `${wrap.id}/${pilot.id}`,
        wrap: wrap.id,
        cluster: wrap.cluster ?? wrap.target,
        queue: wrap.queue ?? "",
        state: pilot.state as PilotView["state"],
        nativeId: pilot.job,
        reason: isActive ? pilot.reason : null,
        waiting: isActive ? null : pilot.reason,
        draining: false,
        output: null,
        requested: null,
        active: null,
        ends: null,
        ended: null,
        agents: [],
        workers: pilot.workers,
      };
    }),
  );
