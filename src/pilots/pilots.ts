import type { Shape } from "../core/run.ts";
import type { Pilot } from "../core/state.ts";
import type { Agents } from "../agent-links/agents.ts";
import { type LongTimer, repeatTimer } from "../long-timer.ts";
import type { Engine } from "../server/engine.ts";
import { type ClusterKeeper, type PilotFiles, createClusterKeeper } from "./cluster-keeper.ts";
import type { Companion } from "./companion.ts";
import type { KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import { createKeepers } from "./keepers.ts";
import type { Waiting } from "../managers/waiting-words.ts";
import { createRoster, type Roster } from "./roster.ts";
import { type Spools, createSpools } from "./spools.ts";
import type { AgentId, PilotId } from "../core/ids.ts";

/**
 * Keeps all fleets: one keeper for each cluster, so that none waits for another's manager. Agents outside any fleet
 * have only a lease.
 */
export interface Pilots {
  /** Something may have ended: looks now and shortly after, not at the next period. */
  look(): void;
  /** There is new work: looks now if there is no pilot, else starts others in a moment if those that are there do not do. */
  expectWork(): void;
  /** Drains or cancels every pilot; resolves when none is left. */
  stop(now: boolean): Promise<void>;
  /** Why a fleet starts no pilot although tasks wait, or null. */
  problem(cluster: string, queue: string): string | null;
  /** Why the last pilot that did not start failed, until one does start. */
  failure(cluster: string, queue: string): string | null;
  /** What was decided about a fleet the last time something was: a sentence. */
  decision(cluster: string, queue: string): string | null;
  /** Where a pilot's script and output are; undefined: its queue is not configured any more. */
  files(pilot: Pilot): PilotFiles | undefined;
  /** The fleets that could run a shape; those of the default cluster if it names none. */
  able(shape: Shape): Fleet[];
  isDraining(pilot: Pilot): boolean;
  /** What the manager says of a pilot that has not begun or has stopped, or null. */
  waiting(pilot: PilotId): Waiting | null;
  joined(agent: AgentId, pilot: PilotId): void;
  /** Starts pilots by hand. Undefined if there is no such fleet. */
  add(cluster: string, queue: string, count: number): number[] | undefined;
  /** The pilot takes nothing new and ends when empty; one without agents is cancelled. */
  drain(pilot: Pilot, reason: string): Promise<void>;
  cancel(pilot: Pilot, reason: string): Promise<void>;
  /** The fleets of some clusters as they are written now; a cluster without any has gone. */
  change(clusters: Iterable<string>, next: readonly Fleet[]): void;
  /** All of them. */
  fleets(): readonly Fleet[];
  close(): void;
}

export interface PilotsOptions {
  readonly home: string;
  /** Every job name of this home starts with this. */
  readonly prefix: string;
  readonly fleets: readonly Fleet[];
  readonly engine: Engine;
  readonly agents: Agents;
  readonly log: (text: string, facts?: object) => void;
  /** The cluster for tasks that name none. */
  readonly defaultCluster: string;
  readonly onWaiting?: (pilot: PilotId, text: string) => void;
  /** What a manager was heard to say: null if it answered, else why not. */
  readonly onHeard?: (cluster: string, problem: string | null) => void;
  readonly periodMs?: number;
  readonly spools?: Spools;
  /** Tasks' jobs of a cluster, if it can have some. */
  readonly companion?: (cluster: string) => Companion | undefined;
  /** Agents in tasks' jobs about which a manager is asked. */
  readonly cared?: () => ReadonlySet<AgentId>;
  /** How long a silent agent outside any fleet keeps its tasks. */
  readonly orphanLeaseMs?: number;
}

const ORPHAN_LEASE_MS = 60_000;
/** A server with nothing to do should not wake up often: a lease is a minute. */
const ORPHAN_PERIOD_MS = 5000;
const STOP_PERIOD_MS = 1000;

/** Work that comes in quick succession is looked at together. */
const TOGETHER_MS = 20;
/** A process takes a moment to end after its last message. */
const SOON_MS = [30, 100, 300];

/** Started by hand, or from a queue that is no longer configured: there is no manager to ask about them. */
const loseOrphans = (
  fleets: readonly Fleet[],
  { agents, engine, orphanLeaseMs = ORPHAN_LEASE_MS, cared: others = () => new Set() }: PilotsOptions,
  roster: Roster,
): void => {
  const cared = new Set(fleets.flatMap((fleet) => roster.live(fleet).map(({ id }) => id)));
  const inJobs = others();
  const orphans = [...agents.links()].filter(
    ({ id }) => !cared.has(engine.state.agents.get(id)?.pilot ?? 0) && !inJobs.has(id),
  );
  agents.loseSilent(
    orphans.map(({ id }) => id),
    orphanLeaseMs,
  );
};

/** Done once, in a moment, however often it is asked for until then. */
const together = (ms: number, action: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      action();
    }, ms).unref();
  };
};

/** Done these milliseconds after it was last asked for: a server may lose thousands of agents at once. */
const soonAfter = (delays: readonly number[], action: () => void): (() => void) => {
  const timers: NodeJS.Timeout[] = [];
  return () => {
    for (const timer of timers.splice(0)) clearTimeout(timer);
    for (const ms of delays) timers.push(setTimeout(action, ms).unref());
  };
};

const NOBODY_HEARS: Pick<KeeperContext, "onWaiting" | "onHeard"> = {
  onWaiting: () => undefined,
  onHeard: () => undefined,
};

export const createPilots = (options: PilotsOptions): Pilots => {
  const { engine, agents } = options;
  const { state } = engine;
  const roster = createRoster(options.home, engine, agents);
  const spools = options.spools ?? createSpools(options);
  const context: KeeperContext = { ...NOBODY_HEARS, ...options, roster, spools };
  const timers = new Set<LongTimer>();
  let settle: (() => void) | undefined;
  let stopNow: boolean | undefined;
  let closed = false;

  const keepers = createKeepers(
    options.fleets,
    (cluster, fleets) => createClusterKeeper(cluster, fleets, context, options.companion?.(cluster), options.periodMs),
    (keeper) => void lookAt(keeper),
  );
  const { of: keeperOf, ofFleet } = keepers;
  const keeperOfPilot = (pilot: PilotId): ClusterKeeper | undefined => keeperOf(state.pilots.get(pilot)?.cluster ?? "");

  const checkStop = (): void => {
    if (stopNow === undefined) return;
    const now = stopNow;
    const empty = keepers.all().map((keeper) => keeper.stop(now));
    if (!empty.includes(false)) settle?.();
  };

  const lookAt = async (keeper: ClusterKeeper): Promise<void> => {
    if (closed) return;
    await keeper.look();
    keepers.keepTime();
    checkStop();
  };

  const growSoon = together(TOGETHER_MS, () => {
    if (closed) return;
    for (const keeper of keepers.all()) keeper.grow();
    keepers.keepTime();
  });

  const lookAll = (which: (keeper: ClusterKeeper) => boolean = () => true): void => {
    for (const keeper of keepers.all()) if (which(keeper)) void lookAt(keeper);
  };

  const lookSoon = soonAfter(SOON_MS, () => lookAll());

  const every = (ms: number, action: () => void): void => {
    timers.add(repeatTimer(ms, action));
  };

  void spools
    .importAll()
    .then(() => spools.prune())
    .then(() => {
      if (closed) return;
      lookAll();
      keepers.begin();
      every(options.periodMs ?? ORPHAN_PERIOD_MS, () => loseOrphans(keepers.fleets(), options, roster));
    });

  return {
    look: () => {
      lookAll();
      lookSoon();
    },
    expectWork: () => {
      lookAll(({ fleets }) => fleets.some((fleet) => roster.live(fleet).length === 0));
      growSoon();
    },
    stop: (now) =>
      new Promise((resolve) => {
        settle = resolve;
        if (stopNow === undefined) every(options.periodMs ?? STOP_PERIOD_MS, checkStop);
        stopNow = now;
        checkStop();
        if (now) for (const link of agents.links()) agents.drain(link.id, true, "the server is stopping");
        lookAll();
      }),
    problem: (cluster, queue) => ofFleet(cluster, queue, (keeper, fleet) => keeper.problem(fleet)) ?? null,
    failure: (cluster, queue) => ofFleet(cluster, queue, (keeper, fleet) => keeper.failure(fleet)) ?? null,
    decision: (cluster, queue) => ofFleet(cluster, queue, (keeper, fleet) => keeper.decision(fleet)) ?? null,
    files: (pilot) => keeperOf(pilot.cluster)?.files(pilot),
    able: (shape) => keeperOf(shape.cluster ?? options.defaultCluster)?.able(shape) ?? [],
    isDraining: (pilot) => roster.isDraining(pilot),
    waiting: (pilot) => keeperOfPilot(pilot)?.waiting(pilot) ?? null,
    joined: (_agent, pilot) => {
      const known = state.pilots.get(pilot);
      if (known === undefined) return;
      keeperOf(known.cluster)?.joined(known);
      if (known.state !== "PMGR_ACTIVE") roster.change(pilot, "PMGR_ACTIVE");
    },
    add: (cluster, queue, count) => {
      const added = ofFleet(cluster, queue, (keeper, fleet) => keeper.add(fleet, count));
      keepers.keepTime();
      return added;
    },
    drain: async (pilot, reason) => {
      const keeper = keeperOf(pilot.cluster);
      // a pilot without agents has nothing to wait for
      if (roster.agentsOf(pilot.id).length === 0) await keeper?.cancel(pilot, reason);
      else if (keeper !== undefined) keeper.drain(pilot, reason);
      else for (const id of roster.agentsOf(pilot.id)) agents.drain(id, false, reason);
    },
    cancel: async (pilot, reason) => {
      for (const id of roster.agentsOf(pilot.id)) agents.drain(id, true, reason);
      const keeper = keeperOf(pilot.cluster);
      await keeper?.cancel(pilot, reason);
      if (keeper !== undefined) void lookAt(keeper);
    },
    change: (names, next) => {
      keepers.change(names, next);
      lookAll();
    },
    fleets: keepers.fleets,
    close: () => {
      closed = true;
      keepers.close();
      for (const timer of timers) timer.stop();
    },
  };
};
