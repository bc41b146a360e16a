import { mkdir } from "node:fs/promises";
import type { Pilot } from "../core/state.ts";
import { isFinalPilot } from "../core/states.ts";
import { SlipwayError } from "../errors.ts";
import { lifetimeOf } from "../fleet/lifetimes.ts";
import { jobPrefixOf, type KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import { type FleetNotes, noteFailure } from "./notes.ts";
import { lastLine, readOutput } from "./pilot-output.ts";

/**
 * Submits pilots to the manager. The intent is on disk before the manager is asked (rule 3). When a submission ends in
 * an error that does not say whether the manager took the job, the pilot waits, without a native id, until a listing by
 * name has shown it.
 */
export interface PilotStarts {
  /** Begins this many, for this reason; returns at once with their numbers. */
  start(fleet: Fleet, count: number, why: string): number[];
  /** It ended without an agent ever connecting, or the manager never took it. */
  failed(fleet: Fleet, pilot: Pilot, reason: string): Promise<void>;
  /** Submissions under way, and since when, on performance.now(); the oldest first. */
  readonly underway: ReadonlyMap<number, number>;
  /** Errors of submissions that the manager may or may not have taken. */
  readonly errors: Map<number, string>;
  /** Pilots to cancel as soon as their native id is known. */
  readonly cancelRequested: Set<number>;
  /** Pilots whose agents have left and whose jobs were asked to end after them. */
  readonly stoppingWithServer: Set<number>;
}

/** Certainly not taken: the command could not even start, or the manager refused in words we know. */
const isRefusal = (error: unknown): boolean =>
  error instanceof SlipwayError
    ? error.row.transient !== true
    : error instanceof Error && error.name === "CommandError" && !(error as Error & { timedOut?: boolean }).timedOut;

export const createPilotStarts = (context: KeeperContext, notesOf: (fleet: Fleet) => FleetNotes): PilotStarts => {
  const { engine, roster, log } = context;
  const { state } = engine;
  const underway = new Map<number, number>();
  const cancelRequested = new Set<number>();
  const errors = new Map<number, string>();

  const failed = async (fleet: Fleet, pilot: Pilot, reason: string): Promise<void> => {
    const directory = roster.directoryOf(fleet, pilot);
    const files = fleet.outputs?.({ jobName: pilot.jobName, directory }) ?? [];
    const output = await readOutput(directory, files);
    // it may have connected after all while we read its files
    if (isFinalPilot(pilot.state)) return;
    const said = lastLine(output);
    const whole = reason === "" ? said || "it ended before its agent connected" : reason;
    const text = said === "" || whole.includes(said) ? whole : `${whole}; it said: ${said}`;
    noteFailure(notesOf(fleet), `pilot ${pilot.id}: ${text}${output === "" ? "" : `\n${output}`}`);
    roster.change(pilot.id, "FAILED", { reason: text, ...(output === "" ? {} : { output }) });
    log(`pilot ${pilot.id} did not start: ${text}`);
  };

  const submit = async (fleet: Fleet, pilot: Pilot, intent: number): Promise<void> => {
    await engine.whenDurable(intent);
    roster.change(pilot.id, "PMGR_LAUNCHING");
    const directory = roster.directoryOf(fleet, pilot);
    let asked = false;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const lifetime = lifetimeOf(pilot.id, {
        walltime: fleet.walltime,
        lifetime: fleet.policy.lifetime,
        stagger: fleet.policy.stagger,
        signal: fleet.signal,
        signalBefore: fleet.signalBefore,
      });
      const job = await fleet.prepare({ id: pilot.id, jobName: pilot.jobName, directory, lifetime });
      asked = true;
      const { nativeId, note } = await fleet.provider.submit(job);
      roster.change(pilot.id, "PMGR_ACTIVE_PENDING", { nativeId });
      log(`pilot ${pilot.id} was submitted to ${fleet.cluster} as ${nativeId}${note === undefined ? "" : `: ${note}`}`);
      if (cancelRequested.has(pilot.id)) await fleet.provider.cancel([nativeId]);
    } catch (error) {
      const { message } = error as Error;
      if (pilot.nativeId !== "") log(`pilot ${pilot.id} was not cancelled yet: ${message}`);
      else if (!asked || isRefusal(error)) await failed(fleet, pilot, message);
      else {
        errors.set(pilot.id, message);
        // `why` says since when, while it is looked up
        context.onHeard(fleet.cluster, message);
        log(`pilot ${pilot.id} may have reached ${fleet.cluster}; Slipway will look it up: ${message}`);
      }
    }
  };

  return {
    underway,
    cancelRequested,
    stoppingWithServer: new Set(),
    errors,
    failed,
    start: (fleet, count, why) => {
      const ids: number[] = [];
      for (let i = 0; i < count; i += 1) {
        const id = state.nextPilot;
        const { cluster, queue } = fleet;
        const jobName = `${jobPrefixOf(context, fleet)}-${id}`;
        const intent = engine.commit({
          type: "pilot.requested",
          at: engine.clock(),
          pilot: id,
          cluster,
          queue,
          jobName,
          why,
        });
        notesOf(fleet).requested += 1;
        ids.push(id);
        underway.set(id, performance.now());
        void submit(fleet, state.pilots.get(id)!, intent)
          .catch((error: unknown) => log(`pilot ${id}: ${(error as Error).message}`))
          .finally(() => underway.delete(id));
      }
      return ids;
    },
  };
};
