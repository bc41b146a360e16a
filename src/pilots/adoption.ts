import type { Pilot } from "../core/state.ts";
import { isFinalPilot } from "../core/states.ts";
import type { FoundJob, Provider } from "../managers/provider.ts";
import { jobPrefixOf, type KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import type { PilotStarts } from "./pilot-starts.ts";

/**
 * Finds jobs again by their name (rule 3): once before anything is submitted, and whenever the answer to a submission
 * was lost. A job of this home that belongs to no living pilot is a stray and is cancelled; jobs of other homes, and
 * jobs that are not pilots, are never touched.
 */
export interface Adoption {
  /** Rejects when the manager does not answer; nothing may be submitted before it has resolved once. */
  catchUp(): Promise<void>;
}

export const createAdoption = (
  context: KeeperContext,
  provider: Provider,
  fleets: readonly Fleet[],
  starts: PilotStarts,
): Adoption => {
  const { engine, roster, log } = context;
  const { state } = engine;
  const inherited = new Set(state.pilots.keys());
  const prefixesNow = (): string[] => [...new Set(fleets.map((fleet) => jobPrefixOf(context, fleet)))];
  let listed = false;

  /** Submitted, or about to be, but nobody knows under which id. */
  const unanswered = (): { fleet: Fleet; pilot: Pilot }[] =>
    fleets.flatMap((fleet) =>
      roster
        .live(fleet)
        .filter(({ id, nativeId }) => nativeId === "" && !starts.underway.has(id))
        .map((pilot) => ({ fleet, pilot })),
    );

  const pilotOf = ({ name }: FoundJob): number | undefined => {
    const prefix = prefixesNow().find((each) => name.startsWith(`${each}-`));
    const id = prefix === undefined ? "" : name.slice(prefix.length + 1);
    return /^[1-9]\d{0,14}$/.test(id) ? Number(id) : undefined;
  };

  const cancelStrays = async (jobs: readonly FoundJob[]): Promise<void> => {
    const strays = jobs.filter((job) => {
      const id = pilotOf(job);
      if (id === undefined || starts.underway.has(id)) return false;
      const pilot = state.pilots.get(id);
      return pilot === undefined || isFinalPilot(pilot.state);
    });
    if (strays.length === 0) return;
    log(`cancelling jobs of this home that belong to no pilot: ${strays.map(({ nativeId }) => nativeId).join(", ")}`);
    await provider.cancel(strays.map(({ nativeId }) => nativeId));
  };

  return {
    catchUp: async () => {
      const missing = unanswered();
      if (listed && missing.length === 0) return;
      const jobs: FoundJob[] = [];
      for (const prefix of prefixesNow()) jobs.push(...(await provider.list(`${prefix}-`)));
      const byName = new Map(jobs.map((job) => [job.name, job.nativeId]));
      for (const { fleet, pilot } of missing) {
        const nativeId = byName.get(pilot.jobName);
        if (nativeId !== undefined) roster.change(pilot.id, "PMGR_ACTIVE_PENDING", { nativeId });
        else if (inherited.has(pilot.id))
          roster.change(pilot.id, "FAILED", { reason: "the server ended before it was submitted" });
        else await starts.failed(fleet, pilot, starts.errors.get(pilot.id) ?? "the manager did not take it");
        starts.errors.delete(pilot.id);
      }
      if (!listed) await cancelStrays(jobs);
      listed = true;
    },
  };
};
