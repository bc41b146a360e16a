import type { Shape } from "../core/run.ts";
import { type Resources, fromUnits } from "../core/resources.ts";
import { type FleetDecision, decide } from "../fleet/decide.ts";
import { decisionText } from "../fleet/decision-text.ts";
import { type Candidate, canRun, demandOn } from "../fleet/demand.ts";
import type { Demand, FleetSnapshot } from "../fleet/snapshot.ts";
import type { KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import { giveUp } from "./give-up.ts";
import type { Retiring } from "./retiring.ts";
import type { FleetNotes } from "./notes.ts";
import type { PilotStarts } from "./pilot-starts.ts";
import { freshSeconds, supplyOf } from "./supply.ts";

/** Asks each fleet's strategy what to do about the waiting tasks, and does it. */
export interface Deciding {
  /** For every fleet of the cluster; if one fails, it notes the problem and the others continue. */
  decideAll(): Promise<void>;
  /** Starts what new work needs and nothing else: what is too many, or given up, is counted in looks. */
  grow(): void;
  /** The fleets that could run a shape. */
  able(shape: Shape): Fleet[];
}

export interface DecidingOptions {
  readonly cluster: string;
  readonly fleets: readonly Fleet[];
  readonly notesOf: (fleet: Fleet) => FleetNotes;
  readonly starts: PilotStarts;
  readonly retiring: Retiring;
  readonly isStopping: () => boolean;
}

/** Submissions under way at once, on top of the limit on commands themselves. */
const MOST_STARTS = 20;

/** Cores of a whole pilot, as far as anybody knows. */
const coresOf = ({ nodes }: Fleet, offer: Resources | undefined): number | undefined => {
  const cpus = offer?.["cpus"];
  return cpus === undefined || !Number.isFinite(cpus) ? undefined : fromUnits("cpus", cpus) * nodes;
};

export const createDeciding = (
  context: KeeperContext,
  { cluster, fleets, notesOf, starts, retiring, isStopping }: DecidingOptions,
): Deciding => {
  const { engine, roster, log } = context;

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
      living: roster.live(fleet).length > 0,
    }));

  const snapshotOf = (fleet: Fleet, notes: FleetNotes, demand: readonly Demand[]) => {
    const supply = supplyOf(context, fleet, notes, retiring.hasLostAgents);
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
      stopping: isStopping() || !engine.listeners.mayPlace(),
    };
  };

  /** Asks for what was decided, and keeps why. */
  const startSome = (fleet: Fleet, notes: FleetNotes, seen: FleetSnapshot, decision: FleetDecision): void => {
    const start = Math.max(0, Math.min(decision.start, MOST_STARTS - starts.underway.size));
    const isNews = start > 0 || seen.demand.length > 0 || decision.stop.length > 0 || notes.decision === null;
    const why = decisionText(seen, decision, start, { cores: coresOf(fleet, roster.offerOf(fleet)) });
    // what led to the pilots that are there is told until something else is decided
    if (isNews && !seen.stopping) notes.decision = why;
    if (start > 0) starts.start(fleet, start, why);
  };

  const carryOut = async (fleet: Fleet, demand: readonly Demand[]): Promise<void> => {
    const notes = notesOf(fleet);
    const seen = snapshotOf(fleet, notes, demand);
    const decision = decide(seen);
    notes.first = false;
    notes.problem = decision.problem;
    notes.suggested = decision.suggested;
    if (decision.giveUp !== null) {
      const all = candidates();
      const others = all.filter((_, i) => fleets[i] !== fleet);
      const mine = all[fleets.indexOf(fleet)];
      if (mine !== undefined) giveUp(context, decision.giveUp, mine, others, notes);
    }
    startSome(fleet, notes, seen, decision);
    const leaving = decision.stop.map((id) => engine.state.pilots.get(id)!);
    for (const pilot of leaving) if (roster.agentsOf(pilot.id).length > 0) retiring.drain(pilot, "idle");
    await retiring.cancel(
      leaving.filter(({ id }) => roster.agentsOf(id).length === 0),
      "no longer needed",
    );
  };

  /** What each fleet is asked for. */
  const demandNow = (): (readonly Demand[])[] => {
    const able = candidates();
    const nodes = able.map(({ offer }) => offer).filter((offer) => offer !== undefined);
    const waiting = engine.scheduler.demand(nodes);
    return demandOn(waiting, able, context.defaultCluster, engine.scheduler.sharedIn(cluster));
  };

  const fail = (fleet: Fleet, { message }: Error): void => {
    notesOf(fleet).problem = message;
    log(`${cluster}/${fleet.queue}: ${message}`);
  };

  return {
    decideAll: async () => {
      const demand = demandNow();
      // they may become others meanwhile
      for (const [i, fleet] of [...fleets].entries())
        try {
          await carryOut(fleet, demand[i]!);
        } catch (error) {
          fail(fleet, error as Error);
        }
    },
    grow: () => {
      const demand = demandNow();
      for (const [i, fleet] of fleets.entries()) {
        const notes = notesOf(fleet);
        if (notes.first || demand[i]!.length === 0) continue;
        try {
          const seen = snapshotOf(fleet, notes, demand[i]!);
          // what is too many, or given up, is decided at the next look
          startSome(fleet, notes, seen, { ...decide(seen), stop: [], giveUp: null });
        } catch (error) {
          fail(fleet, error as Error);
        }
      }
    },
    able: (shape) => {
      const all = candidates();
      return fleets.filter((_, i) => canRun(shape, all[i]!, context.defaultCluster));
    },
  };
};
