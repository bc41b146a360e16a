import type { Shape } from "../core/run.ts";
import type { Pilot } from "../core/state.ts";
import { createAdoption } from "./adoption.ts";
import type { Companion } from "./companion.ts";
import type { KeeperContext } from "./context.ts";
import { createDeciding } from "./deciding.ts";
import { changeFleets } from "./change-fleets.ts";
import type { Fleet } from "./fleet.ts";
import type { Roster } from "./roster.ts";
import { type Stop, createRetiring } from "./retiring.ts";
import { createManagerWatch } from "./manager-watch.ts";
import type { Waiting } from "../managers/waiting-words.ts";
import { type FleetNotes, createNotes, noteSuccess } from "./notes.ts";
import { createPilotCancels } from "./pilot-cancels.ts";
import { createPilotEnds } from "./pilot-ends.ts";
import { createPilotStarts } from "./pilot-starts.ts";
import { restMs } from "./rest.ts";
import type { PilotId } from "../core/ids.ts";

/**
 * Keeps the fleets of one cluster: a manager that hangs delays no other. Each period, one question to the manager
 * covers all pilots of all queues, however many there are; then each fleet's strategy decides, and the keeper does it.
 */
export interface PilotFiles {
  readonly directory: string;
  /** In it, or absolute. */
  readonly outputs: readonly string[];
}

const filesOf = (roster: Roster, fleets: readonly Fleet[], pilot: Pilot): PilotFiles | undefined => {
  const fleet = fleets.find(({ queue }) => queue === pilot.queue);
  if (fleet === undefined) return undefined;
  const directory = roster.directoryOf(fleet, pilot);
  return { directory, outputs: fleet.outputs?.({ jobName: pilot.jobName, directory }) ?? [] };
};

export interface ClusterKeeper {
  readonly cluster: string;
  readonly fleets: readonly Fleet[];
  /** Between two looks; longer while the cluster is at rest: there is no work, and it has no pilots, or quiet ones. */
  readonly periodMs: number;
  /** The cluster's queues as they are written now; living pilots keep their terms. */
  change(next: readonly Fleet[]): void;
  /** Looks now. `prompt` fleets ask about their jobs with every look, the others once a period. */
  look(): Promise<void>;
  /** Starts what new work needs, without a question to the manager; while a look is under way, after it. */
  grow(): void;
  /** Starts pilots by hand, whatever the strategy says. */
  add(fleet: Fleet, count: number): number[];
  drain(pilot: Pilot, reason: string): void;
  cancel(pilot: Pilot, reason: string): Promise<void>;
  /** An agent of it has connected; called before the pilot is active. */
  joined(pilot: Pilot): void;
  problem(fleet: Fleet): string | null;
  /** Why the last pilot that did not start failed, until one does start. */
  failure(fleet: Fleet): string | null;
  /** What was decided the last time something was. */
  decision(fleet: Fleet): string | null;
  /** Where a pilot's script and output are, while its queue is configured. */
  files(pilot: Pilot): PilotFiles | undefined;
  waiting(pilot: PilotId): Waiting | null;
  /** The fleets that could run a shape. */
  able(shape: Shape): Fleet[];
  /** Ends all pilots; true when none is left. */
  stop(now: boolean): boolean;
}

/** A look or a submission that takes longer is reported as a problem. */
const SLOW_MS = 30_000;
/** How long a stopping server tries to reach its manager; after that, its successor finds the pilots again. */
const UNREACHABLE_MS = 60_000;

export const createClusterKeeper = (
  cluster: string,
  declared: readonly Fleet[],
  context: KeeperContext,
  companion: Companion | undefined = undefined,
  fixedPeriodMs?: number,
): ClusterKeeper => {
  const fleets = [...declared];
  const periodMs = (): number => fixedPeriodMs ?? Math.min(...fleets.map(({ policy }) => policy.period)) * 1000;
  const { engine, agents, roster, log } = context;
  const { provider } = fleets[0]!;
  const memory = new Map<Fleet, FleetNotes>(fleets.map((fleet) => [fleet, createNotes()]));
  const notesOf = (fleet: Fleet): FleetNotes => {
    let notes = memory.get(fleet);
    if (notes === undefined) memory.set(fleet, (notes = createNotes()));
    return notes;
  };
  const starts = createPilotStarts(context, notesOf);
  const ends = createPilotEnds(context, notesOf, starts);
  const cancels = createPilotCancels(provider);
  const adoption = createAdoption(context, provider, fleets, starts);
  const watch = createManagerWatch(context, { cluster, fleets, provider, periodMs, adoption, ends, companion });
  const retiring = createRetiring(context, fleets, { starts, ends, cancels });
  let lookingSince: number | undefined;
  let again = false;
  let growsAfter = false;
  let stopping: Stop | undefined;
  const isStopping = (): boolean => stopping !== undefined;
  /** Since when the manager owes an answer, to a question or to a submission; undefined if it owes none. */
  const askedSince = (): number | undefined => {
    const [submitted] = starts.underway.values();
    return submitted === undefined ? lookingSince : Math.min(submitted, lookingSince ?? Infinity);
  };
  const deciding = createDeciding(context, { cluster, fleets, notesOf, starts, retiring, isStopping });

  const loseSilent = (): void => {
    for (const fleet of fleets)
      for (const pilot of roster.live(fleet))
        agents.loseSilent(roster.agentsOf(pilot.id), roster.termsOf(fleet, pilot).leaseMs);
    companion?.loseSilent();
  };

  const windDown = async (): Promise<void> => {
    if (stopping === undefined) return;
    await retiring.windDown(stopping);
    await companion?.windDown(stopping);
  };

  const lookOnce = async (): Promise<void> => {
    loseSilent();
    if (!(await watch.hear())) return windDown();
    await retiring.clearAway();
    await deciding.decideAll();
    await companion?.look();
    await windDown();
  };

  const grow = (): void => {
    growsAfter = lookingSince !== undefined;
    if (!growsAfter && watch.problem === null && !isStopping()) deciding.grow();
  };

  return {
    cluster,
    fleets,
    get periodMs() {
      const isCalm = watch.problem === null && starts.underway.size === 0 && !isStopping();
      if (!isCalm || fixedPeriodMs !== undefined) return periodMs();
      return Math.max(periodMs(), restMs(fleets, context, notesOf, companion));
    },
    change: (next) => {
      for (const gone of changeFleets(fleets, next, roster)) memory.delete(gone);
    },
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
        if (growsAfter) grow();
      }
    },
    grow,
    add: (fleet, count) => starts.start(fleet, count, `asked for by hand: ${count} pilot${count === 1 ? "" : "s"}`),
    drain: (pilot, reason) => retiring.drain(pilot, reason),
    cancel: (pilot, reason) => retiring.cancel([pilot], reason),
    joined: (pilot) => {
      const fleet = fleets.find(({ queue }) => queue === pilot.queue);
      if (fleet === undefined) return;
      if (pilot.state !== "PMGR_ACTIVE")
        noteSuccess(notesOf(fleet), Math.max(0, (engine.clock() - pilot.requested) / 1000));
      if (pilot.draining === true) for (const id of roster.agentsOf(pilot.id)) agents.drain(id, false, "drained");
    },
    problem: (fleet) => {
      if (watch.problem !== null) return watch.problem;
      const ms = performance.now() - (askedSince() ?? Infinity);
      return ms > SLOW_MS ? `the manager has not answered for ${Math.round(ms / 1000)} s` : notesOf(fleet).problem;
    },
    decision: (fleet) => notesOf(fleet).decision,
    files: (pilot) => filesOf(roster, fleets, pilot),
    failure: (fleet) => notesOf(fleet).failures.at(-1)?.split("\n")[0] ?? null,
    waiting: (pilot) => ends.waiting(pilot),
    able: (shape) => deciding.able(shape),
    stop: (now) => {
      if (stopping === undefined || stopping.now !== now) stopping = { now, since: performance.now() };
      const live = fleets.flatMap((fleet) => roster.live(fleet));
      const late = performance.now() - stopping.since > UNREACHABLE_MS;
      const unreachable = late && (watch.problem !== null || askedSince() !== undefined);
      const none = live.length === 0 || (unreachable && live.every(({ id }) => roster.agentsOf(id).length === 0));
      return none && (companion?.isEmpty(unreachable) ?? true);
    },
  };
};
