import { rm } from "node:fs/promises";
import type { Pilot } from "../core/state.ts";
import { isFinalPilot } from "../core/states.ts";
import type { JobStatus } from "../managers/provider.ts";
import type { KeeperContext } from "./context.ts";
import { endingText } from "./ending.ts";
import type { Fleet } from "./fleet.ts";
import { type Waiting, waitingOf } from "../managers/waiting-words.ts";
import type { FleetNotes } from "./notes.ts";
import type { PilotStarts } from "./pilot-starts.ts";
import type { PilotId } from "../core/ids.ts";

/**
 * What the manager's answer about a pilot's job means for the pilot and its agents:
 *
 *   queued, held   no agent can live: those that do not answer are lost. After a requeue the same pilot waits again
 *   unstartable          held because it could not be started: it gets cancelled and counts as a failed start
 *   active         nothing, except that a pilot that waited no longer waits
 *   suspended      its agents are silent, and keep what they have
 *   ended          its agents are lost; DONE, CANCELED or FAILED, and a failed start if no agent ever connected
 *   unknown        nothing is concluded
 */
export interface PilotEnds {
  heard(fleet: Fleet, pilot: Pilot, status: JobStatus, askedAt: number): Promise<void>;
  /** What the manager last said of a pilot that has not begun or has stopped; null otherwise. */
  waiting(pilot: PilotId): Waiting | null;
  /** Its job could not be started, and would keep its place until somebody steps in. */
  cannotStart(pilot: PilotId): boolean;
}

/** A pilot that loses its agents this soon after they connected does not work. */
const SHORT_MS = 30_000;

export const createPilotEnds = (
  context: KeeperContext,
  notesOf: (fleet: Fleet) => FleetNotes,
  starts: PilotStarts,
): PilotEnds => {
  const { engine, agents, roster, spools, log } = context;
  const said = new Map<number, Waiting>();
  /** What the manager said of jobs that could not be started. */
  const unstartable = new Map<number, JobStatus>();

  const ended = async (fleet: Fleet, pilot: Pilot, status: JobStatus): Promise<void> => {
    // what its agents wrote on their way out counts before they are given up
    await spools.importAll();
    const unstarted = unstartable.get(pilot.id);
    unstartable.delete(pilot.id);
    // it was cancelled for that reason, which the manager may no longer report
    const reason = endingText(unstarted === undefined ? status : { ...unstarted, outcome: "start-failed" });
    const living = roster.agentsOf(pilot.id);
    const joined = roster.everJoined(pilot.id);
    agents.lose(living, `pilot ${pilot.id} ended${reason === "" ? "" : `: ${reason}`}`);
    await spools.prune();
    said.delete(pilot.id);
    const cancelRequested = starts.cancelRequested.delete(pilot.id);
    if (cancelRequested)
      return void roster.change(pilot.id, "CANCELED", pilot.reason === "" ? { reason: "cancelled" } : {});
    if (!joined || unstarted !== undefined) return starts.failed(fleet, pilot, reason);
    const notes = notesOf(fleet);
    if (status.outcome === "cancelled" && !starts.stoppingWithServer.delete(pilot.id))
      return void roster.change(pilot.id, "CANCELED", { reason });
    if (status.outcome === "timeout") return void roster.change(pilot.id, "DONE", { reason });
    const orderly = living.length === 0 || status.outcome === "done";
    if (orderly) notes.shortLives = 0;
    if (orderly && status.outcome !== "preempted")
      // something in it was killed, though its agents left in good order
      return void roster.change(pilot.id, "DONE", status.outcome === "out-of-memory" ? { reason } : {});
    if (!orderly) notes.shortLives = engine.clock() - pilot.active < SHORT_MS ? notes.shortLives + 1 : 0;
    if (notes.shortLives > 0) notes.failedAt = performance.now();
    roster.change(pilot.id, "FAILED", { reason: reason === "" ? "ended unexpectedly" : reason });
  };

  /** Removes its directory if the fleet wants that: script, settings and what it printed. */
  const tidy = async (fleet: Fleet, pilot: Pilot): Promise<void> => {
    const { cleanup } = roster.termsOf(fleet, pilot);
    const wanted = cleanup === "always" || (cleanup === "success" && pilot.state === "DONE");
    if (!wanted || !isFinalPilot(pilot.state)) return;
    const directory = roster.directoryOf(fleet, pilot);
    await rm(directory, { recursive: true, force: true }).catch((error: unknown) =>
      log(`${directory} was not removed: ${(error as Error).message}`),
    );
  };

  const waits = (fleet: Fleet, pilot: Pilot, status: JobStatus, askedAt: number): void => {
    const waiting = waitingOf(fleet.manager, status);
    const { text } = waiting;
    if (said.get(pilot.id)?.text !== text) {
      said.set(pilot.id, waiting);
      context.onWaiting(pilot.id, text);
    }
    if (status.state === "suspended") return;
    const silent = roster.agentsOf(pilot.id).filter((id) => (agents.link(id)?.suspectSince ?? Infinity) < askedAt);
    if (silent.length === 0) return;
    log(`pilot ${pilot.id} waits in ${pilot.cluster} again: ${text}`);
    agents.lose(silent, `pilot ${pilot.id} was put back into the queue: ${text}`);
  };

  return {
    waiting: (pilot) => said.get(pilot) ?? null,
    cannotStart: (pilot) => unstartable.has(pilot),
    heard: async (fleet, pilot, status, askedAt) => {
      if (status.successor !== undefined && status.successor !== pilot.nativeId) {
        log(`pilot ${pilot.id} continues as ${status.successor}`);
        roster.change(pilot.id, pilot.state, { nativeId: status.successor });
        const gone = roster.agentsOf(pilot.id).filter((id) => agents.link(id)?.channel === undefined);
        agents.lose(gone, `pilot ${pilot.id} continues as job ${status.successor}`);
        return;
      }
      if (status.stuck === true) unstartable.set(pilot.id, status);
      // somebody stepped in
      else if (status.state === "queued" || status.state === "active") unstartable.delete(pilot.id);
      switch (status.state) {
        case "ended": {
          const connected = roster.agentsOf(pilot.id).some((id) => agents.link(id)?.channel !== undefined);
          // a job that the manager has forgotten need not have ended
          if (status.outcome === "unknown" && connected) return;
          await ended(fleet, pilot, status);
          return tidy(fleet, pilot);
        }
        case "active":
          said.delete(pilot.id);
          return;
        case "queued":
        case "held":
        case "suspended":
          return waits(fleet, pilot, status, askedAt);
        case "unknown":
          said.set(pilot.id, waitingOf(fleet.manager, status));
      }
    },
  };
};
