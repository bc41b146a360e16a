import type { Shape } from "../../core/run.ts";
import type { Pilot } from "../../core/state.ts";
import { decide } from "../../fleet/decide.ts";
import { type Candidate, canRun, demandOn } from "../../fleet/demand.ts";
import type { Demand } from "../../fleet/snapshot.ts";
import { createAdoption } from "./adoption.ts";
import type { KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import { giveUp } from "./give-up.ts";
import { type FleetNotes, type Waiting, createNotes, noteSuccess } from "./notes.ts";
import { createPilotCancels } from "./pilot-cancels.ts";
import { createPilotEnds } from "./pilot-ends.ts";
import { createPilotStarts } from "./pilot-starts.ts";
import { freshSeconds, supplyOf } from "./supply.ts";

/**
 * Keeps the fleets of one cluster: a manager that hangs holds up no other. In one period the manager is asked once about
 * all pilots of all queues, however many they are; then each fleet's strategy decides, and that is carried out.
 */
export interface ClusterKeeper {
  readonly cluster: string;
  readonly fleets: readonly Fleet[];
  readonly periodMs: number;
  /** Looks now. `prompt` fleets ask about their jobs with every look, the others once a period. */
  look(): Promise<void>;
  /** Starts pilots by hand, whatever the strategy says. */
  add(fleet: Fleet, count: number): number[];
  drain(pilot: Pilot, reason: string): void;
  cancel(pilot: Pilot, reason: string): Promise<void>;
  /** An agent of it has connected; called before the pilot is active. */
  joined(pilot: Pilot): void;
  problem(fleet: Fleet): string | null;
  /** What was said of the last pilot that did not start, until one does. */
  failure(fleet: Fleet): string | null;
  waiting(pilot: number): Waiting | null;
  /** The fleets that could run a shape. */
  able(shape: Shape): Fleet[];
  /** Ends all pilots; true when none is left. */
  stop(now: boolean): boolean;
}

/** Submissions under way at once, beside the bound of the commands themselves. */
const MOST_STARTS = 20;
/** A look that takes longer is told as a problem. */
const SLOW_MS = 30_000;
/** After `down --now`, what has not ended by itself in this time is cancelled again. */
const STUBBORN_MS = 15_000;
/** A server stops without a manager that cannot be reached for so long; its successor finds the pilots again. */
const UNREACHABLE_MS = 60_000;
/** A job that goes on without agents for so long is ended. */
const SPENT_MS = 60_000;

export const createClusterKeeper = (
  cluster: string,
  fleets: readonly Fleet[],
  context: KeeperContext,
  periodMs = Math.min(...fleets.map(({ policy }) => policy.period)) * 1000,
): ClusterKeeper => {
  const { engine, agents, roster, log } = context;
  const { provider } = fleets[0]!;
  const prompt = fleets.every((fleet) => fleet.prompt === true);
  const memory = new Map<Fleet, FleetNotes>(fleets.map((fleet) => [fleet, createNotes()]));
  const notesOf = (fleet: Fleet): FleetNotes => memory.get(fleet)!;
  const starts = createPilotStarts(context, notesOf);
  const ends = createPilotEnds(context, notesOf, starts);
  const cancels = createPilotCancels(provider);
  const adoption = createAdoption(context, provider, fleets, starts);
  const spentSince = new Map<number, number>();
  let managerProblem: string | null = null;
  let polledAt = -Infinity;
  let lookingSince: number | undefined;
  let again = false;
  let stopping: { now: boolean; since: number } | undefined;

  const poll = async (): Promise<void> => {
    const askedAt = performance.now();
    polledAt = askedAt;
    await adoption.catchUp();
    const live = fleets.flatMap((fleet) => roster.live(fleet).map((pilot) => ({ fleet, pilot })));
    const ids = live.map(({ pilot }) => pilot.nativeId).filter((id) => id !== "");
    if (ids.length === 0) return;
    const answers = await provider.poll(ids);
    for (const { fleet, pilot } of live) {
      const answer = answers.get(pilot.nativeId);
      if (answer !== undefined) await ends.heard(fleet, pilot, answer, askedAt);
    }
  };

  const loseSilent = (): void => {
    for (const fleet of fleets)
      for (const pilot of roster.live(fleet)) agents.loseSilent(roster.agentsOf(pilot.id), fleet.leaseMs);
  };

  const candidates = (): Candidate[] =>
    fleets.map((fleet) => ({
      cluster,
      queue: fleet.queue,
      nodes: fleet.nodes,
      offer: roster.offerOf(fleet),
      untold: !roster.isTold(fleet),
      lifetime: freshSeconds(fleet),
      max: fleet.policy.max,
      unknownTaskDuration: fleet.policy.unknownTaskDuration,
      failing: notesOf(fleet).inARow > 0,
    }));

  const snapshotOf = (fleet: Fleet, notes: FleetNotes, demand: readonly Demand[]) => {
    const supply = supplyOf(context, fleet, notes, isSpent);
    if (demand.length > 0) notes.fleetIdleSince = undefined;
    return {
      policy: fleet.policy,
      first: notes.first,
      ...supply,
      demand,
      known: roster.offerOf(fleet) !== undefined,
      suggested: notes.suggested,
      starts: {
        total: notes.requested,
        failed: notes.failed,
        inARow: notes.inARow + Math.max(0, notes.shortLives - 2),
        sinceLast: (performance.now() - notes.failedAt) / 1000,
      },
      stopping: stopping !== undefined || !engine.listeners.mayPlace(),
    };
  };

  const carryOut = async (fleet: Fleet, demand: readonly Demand[]): Promise<void> => {
    const notes = notesOf(fleet);
    const decision = decide(snapshotOf(fleet, notes, demand));
    notes.first = false;
    notes.problem = decision.problem;
    notes.suggested = decision.suggested;
    if (decision.giveUp !== null) {
      const all = candidates();
      const others = all.filter((_, i) => fleets[i] !== fleet);
      giveUp(context, decision.giveUp, all[fleets.indexOf(fleet)]!, others, notes);
    }
    if (decision.start > 0) starts.start(fleet, Math.min(decision.start, MOST_STARTS - starts.underway.size));
    const leaving = decision.stop.map((id) => engine.state.pilots.get(id)!);
    for (const pilot of leaving) if (roster.agentsOf(pilot.id).length > 0) drain(pilot, "idle");
    await cancel(
      leaving.filter(({ id }) => roster.agentsOf(id).length === 0),
      "no longer needed",
    );
  };

  const drain = (pilot: Pilot, reason: string): void => {
    roster.change(pilot.id, pilot.state, { draining: true });
    for (const id of roster.agentsOf(pilot.id)) agents.drain(id, false, reason);
  };

  const cancel = async (pilots: readonly Pilot[], reason: string): Promise<void> => {
    for (const pilot of pilots) {
      starts.unwanted.add(pilot.id);
      roster.change(pilot.id, pilot.state, { draining: true, reason });
      for (const id of roster.agentsOf(pilot.id)) agents.drain(id, true, reason);
    }
    await cancels.cancel(pilots);
  };

  /** It had agents, has none any more, and its job goes on all the same, as on a dead node that nobody noticed. */
  const isSpent = (pilot: Pilot): boolean =>
    roster.everJoined(pilot.id) && roster.agentsOf(pilot.id).length === 0 && ends.waiting(pilot.id) === null;

  /** Jobs that were told to end and did not, those that cannot start, and those that have lost their agents for good. */
  const clearAway = async (): Promise<void> => {
    const now = performance.now();
    const live = fleets.flatMap((fleet) => roster.live(fleet));
    const spent = live.filter(isSpent);
    for (const id of spentSince.keys()) if (!spent.some((pilot) => pilot.id === id)) spentSince.delete(id);
    for (const { id } of spent) if (!spentSince.has(id)) spentSince.set(id, now);
    const over = live.filter(
      ({ id }) => starts.unwanted.has(id) || ends.isStuck(id) || now - (spentSince.get(id) ?? now) > SPENT_MS,
    );
    await cancels.cancel(over);
  };

  const continueStop = async (): Promise<void> => {
    if (stopping === undefined) return;
    const doomed: Pilot[] = [];
    for (const pilot of fleets.flatMap((fleet) => roster.live(fleet))) {
      const ids = roster.agentsOf(pilot.id);
      const connected = ids.filter((id) => agents.link(id)?.channel !== undefined);
      for (const id of connected)
        if (agents.link(id)?.draining === false) agents.drain(id, stopping.now, "the server stops");
      const late = performance.now() - stopping.since > STUBBORN_MS;
      if (roster.everJoined(pilot.id)) starts.parting.add(pilot.id);
      else starts.unwanted.add(pilot.id);
      if (connected.length === 0 || (stopping.now && late)) doomed.push(pilot);
    }
    await cancels.cancel(doomed);
  };

  /** Whether the manager answers: nothing is submitted to one that does not. */
  const hear = async (): Promise<boolean> => {
    // a look between two periods asks nothing
    if (!prompt && performance.now() - polledAt < periodMs * 0.9) return managerProblem === null;
    try {
      await poll();
      managerProblem = null;
    } catch (error) {
      const { message } = error as Error;
      if (managerProblem !== message) log(`${cluster}: ${message}`);
      managerProblem = message;
    }
    return managerProblem === null;
  };

  const lookOnce = async (): Promise<void> => {
    loseSilent();
    if (!(await hear())) return continueStop();
    await clearAway();
    const demand = demandOn(engine.scheduler.demand(), candidates(), context.defaultCluster);
    for (const [i, fleet] of fleets.entries())
      try {
        await carryOut(fleet, demand[i]!);
      } catch (error) {
        notesOf(fleet).problem = (error as Error).message;
        log(`${cluster}/${fleet.queue}: ${(error as Error).message}`);
      }
    await continueStop();
  };

  return {
    cluster,
    fleets,
    periodMs,
    look: async () => {
      again = true;
      if (lookingSince !== undefined) return;
      try {
        while (again) {
          again = false;
          lookingSince = performance.now();
          await lookOnce();
        }
      } catch (error) {
        log(`${cluster}: ${(error as Error).message}`);
      } finally {
        lookingSince = undefined;
      }
    },
    add: (fleet, count) => starts.start(fleet, count),
    drain: (pilot, reason) => drain(pilot, reason),
    cancel: (pilot, reason) => cancel([pilot], reason),
    joined: (pilot) => {
      const fleet = fleets.find(({ queue }) => queue === pilot.queue);
      if (fleet === undefined) return;
      if (pilot.state !== "PMGR_ACTIVE")
        noteSuccess(notesOf(fleet), Math.max(0, (engine.clock() - pilot.requested) / 1000));
      if (pilot.draining === true) for (const id of roster.agentsOf(pilot.id)) agents.drain(id, false, "drained");
    },
    problem: (fleet) => {
      if (managerProblem !== null) return managerProblem;
      const ms = lookingSince === undefined ? 0 : performance.now() - lookingSince;
      return ms > SLOW_MS ? `the manager has not answered for ${Math.round(ms / 1000)} s` : notesOf(fleet).problem;
    },
    failure: (fleet) => notesOf(fleet).failures.at(-1)?.split("\n")[0] ?? null,
    waiting: (pilot) => ends.waiting(pilot),
    able: (shape) => {
      const all = candidates();
      return fleets.filter((_, i) => canRun(shape, all[i]!, context.defaultCluster));
    },
    stop: (now) => {
      if (stopping === undefined || stopping.now !== now) stopping = { now, since: performance.now() };
      const live = fleets.flatMap((fleet) => roster.live(fleet));
      const late = performance.now() - stopping.since > UNREACHABLE_MS;
      const unreachable = late && (managerProblem !== null || lookingSince !== undefined);
      return live.length === 0 || (unreachable && live.every(({ id }) => roster.agentsOf(id).length === 0));
    },
  };
};
