import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Pilot } from "../../core/state.ts";
import { isFinalPilot } from "../../core/states.ts";
import { type FleetDecision, decide } from "../../fleet/decide.ts";
import { listSpools, pruneSpools, readSpool, removeSpool } from "../../protocol/spool.ts";
import type { Agents } from "../agents.ts";
import type { Engine } from "../engine.ts";
import type { Fleet } from "./fleet.ts";

/**
 * Keeps the fleets: asks providers for pilots when tasks wait, notices when pilots end, and adopts those that a server
 * before this one started. The intent is journaled before the manager is asked (rule 3), and the manager is asked about
 * all jobs with one call per period.
 */

export interface Pilots {
  /** Something may have ended: looks now and shortly after, not at the next period. */
  look(): void;
  /** There is new work: looks now if no pilot is there for it. */
  expectWork(): void;
  /** Drains or cancels every pilot; resolves when none is left. */
  stop(now: boolean): Promise<void>;
  problem(cluster: string, queue: string): string | null;
  joined(agent: number, pilot: number): void;
  close(): void;
}

export interface PilotsOptions {
  readonly home: string;
  /** Starts every job name of this home. */
  readonly prefix: string;
  readonly fleets: readonly Fleet[];
  readonly engine: Engine;
  readonly agents: Agents;
  readonly log: (text: string, facts?: object) => void;
  readonly periodMs?: number;
  /** How long a silent agent of no fleet keeps its tasks. */
  readonly orphanLeaseMs?: number;
}

interface FleetMemory {
  startFailures: number;
  failedAt: number;
  problem: string | null;
  readonly idleSince: Map<number, number>;
}

/** After `down --now`, what has not ended by itself in this time is cancelled again. */
const STUBBORN_MS = 15_000;

const ORPHAN_LEASE_MS = 60_000;

const SOON_MS = [30, 100, 300];

export const createPilots = (options: PilotsOptions): Pilots => {
  const { engine, agents, log } = options;
  const { state } = engine;
  const memory = new Map<Fleet, FleetMemory>(
    options.fleets.map((fleet) => [fleet, { startFailures: 0, failedAt: 0, problem: null, idleSince: new Map() }]),
  );
  /** Known from the journal. Not told apart by time: the wall clock may have been set back between two servers. */
  const inherited = new Set(state.pilots.keys());
  let stopping: { now: boolean; since: number; settle: () => void } | undefined;
  let looking = false;
  let again = false;
  let closed = false;

  const livePilots = (fleet: Fleet): Pilot[] =>
    [...state.pilots.values()].filter(
      (pilot) => pilot.cluster === fleet.cluster && pilot.queue === fleet.queue && !isFinalPilot(pilot.state),
    );

  const agentsOf = (pilot: number): number[] =>
    [...state.agents.values()].filter((agent) => agent.pilot === pilot && agent.ended === 0).map((agent) => agent.id);

  const change = (pilot: number, to: Pilot["state"], facts: { nativeId?: string; reason?: string } = {}): number =>
    engine.commit({ type: "pilot.changed", at: engine.clock(), pilot, state: to, ...facts });

  const start = async (fleet: Fleet): Promise<void> => {
    const id = state.nextPilot;
    const jobName = `${options.prefix}-${id}`;
    const lsn = engine.commit({
      type: "pilot.requested",
      at: engine.clock(),
      pilot: id,
      cluster: fleet.cluster,
      queue: fleet.queue,
      jobName,
    });
    await engine.whenDurable(lsn);
    change(id, "PMGR_LAUNCHING");
    try {
      const directory = join(options.home, "jobs", jobName);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const job = await fleet.prepare({ id, jobName, directory, lifetime: undefined });
      const { nativeId } = await fleet.provider.submit(job);
      change(id, "PMGR_ACTIVE_PENDING", { nativeId });
      log(`pilot ${id} was handed to ${fleet.cluster} as ${nativeId}`);
    } catch (error) {
      failed(fleet, id, (error as Error).message);
    }
  };

  const failed = (fleet: Fleet, pilot: number, reason: string): void => {
    const notes = memory.get(fleet)!;
    notes.startFailures += 1;
    notes.failedAt = performance.now();
    change(pilot, "FAILED", { reason });
    log(`pilot ${pilot} did not start: ${reason}`);
  };

  const importSpools = async (): Promise<void> => {
    for (const path of await listSpools(options.home)) {
      try {
        const spool = await readSpool(path);
        if (!agents.importSpool(spool.uuid, spool.messages)) continue;
        await engine.whenDurable();
        await removeSpool(path);
        log(`results from ${path} were imported`);
      } catch (error) {
        log(`${path} was left alone: ${(error as Error).message}`);
      }
    }
  };

  /** What agents left half written that are surely gone. */
  const prune = (): Promise<void> =>
    pruneSpools(options.home, (uuid) => {
      const agent = state.agents.get(state.agentByUuid.get(uuid) ?? 0);
      return agent !== undefined && agent.ended > 0;
    }).catch((error: unknown) => log(`half a spool was left alone: ${(error as Error).message}`));

  const pilotEnded = async (fleet: Fleet, pilot: Pilot, reason: string): Promise<void> => {
    // what its agents wrote on their way out counts before they are given up
    await importSpools();
    const living = agentsOf(pilot.id);
    const joined =
      pilot.state === "PMGR_ACTIVE" || [...state.agents.values()].some((agent) => agent.pilot === pilot.id);
    agents.lose(living, `pilot ${pilot.id} ended${reason === "" ? "" : `: ${reason}`}`);
    await prune();
    if (!joined) return failed(fleet, pilot.id, reason === "" ? "it ended before its agent connected" : reason);
    change(
      pilot.id,
      living.length === 0 ? "DONE" : "FAILED",
      living.length === 0 ? {} : { reason: reason === "" ? "ended unexpectedly" : reason },
    );
  };

  const poll = async (fleet: Fleet): Promise<void> => {
    const live = livePilots(fleet);
    // handed over by a server before this one, whose answer nobody wrote down
    const lost = live.filter((pilot) => pilot.nativeId === "" && inherited.has(pilot.id));
    if (lost.length > 0) await adopt(fleet, lost);
    const ids = live.map((pilot) => pilot.nativeId).filter((id) => id !== "");
    if (ids.length === 0) return;
    const answers = await fleet.provider.poll(ids);
    for (const pilot of live) {
      const answer = answers.get(pilot.nativeId);
      if (answer?.state === "ended") await pilotEnded(fleet, pilot, answer.reason ?? "");
    }
    for (const pilot of live) {
      if (isFinalPilot(pilot.state)) continue;
      loseSilent(agentsOf(pilot.id), fleet.leaseMs);
    }
  };

  /** Gives up those whose lease is over. */
  const loseSilent = (ids: readonly number[], leaseMs: number): void => {
    const expired = ids.filter((id) => {
      const since = agents.link(id)?.suspectSince;
      return since !== undefined && performance.now() - since > leaseMs;
    });
    if (expired.length > 0) agents.lose(expired, `silent for ${Math.round(leaseMs / 1000)} s`);
  };

  /**
   * Agents that no fleet here looks after: started by hand, or of a queue that is no longer configured. No manager can
   * be asked about them; their lease alone decides.
   */
  const loseOrphans = (): void => {
    const cared = new Set(options.fleets.flatMap((fleet) => livePilots(fleet).map((pilot) => pilot.id)));
    const orphans = [...state.agents.values()].filter((agent) => agent.ended === 0 && !cared.has(agent.pilot));
    loseSilent(
      orphans.map((agent) => agent.id),
      options.orphanLeaseMs ?? ORPHAN_LEASE_MS,
    );
  };

  /** Pilots whose submission was journaled but whose answer was lost in a crash: found by name, or never submitted. */
  const adopt = async (fleet: Fleet, pilots: readonly Pilot[]): Promise<void> => {
    const jobs = new Map((await fleet.provider.list(options.prefix)).map((job) => [job.name, job.nativeId]));
    for (const pilot of pilots) {
      const nativeId = jobs.get(pilot.jobName);
      if (nativeId === undefined) change(pilot.id, "FAILED", { reason: "the server ended before it was submitted" });
      else change(pilot.id, "PMGR_ACTIVE_PENDING", { nativeId });
    }
  };

  const idleOf = (fleet: Fleet, notes: FleetMemory): { pilot: number; seconds: number }[] => {
    const now = performance.now();
    const idle: { pilot: number; seconds: number }[] = [];
    for (const pilot of livePilots(fleet)) {
      const ids = agentsOf(pilot.id);
      const busy =
        pilot.state !== "PMGR_ACTIVE" ||
        ids.length === 0 ||
        ids.some((id) => (engine.scheduler.loadOf(id)?.count ?? 0) > 0);
      if (busy) notes.idleSince.delete(pilot.id);
      else {
        const since = notes.idleSince.get(pilot.id) ?? now;
        notes.idleSince.set(pilot.id, since);
        if (!ids.every((id) => agents.link(id)?.draining === true))
          idle.push({ pilot: pilot.id, seconds: (now - since) / 1000 });
      }
    }
    return idle.sort((a, b) => b.seconds - a.seconds);
  };

  const carryOut = async (fleet: Fleet, notes: FleetMemory): Promise<void> => {
    const waiting = engine.scheduler
      .demand()
      .filter(
        ({ shape }) =>
          (shape.cluster ?? fleet.cluster) === fleet.cluster && (shape.queue ?? fleet.queue) === fleet.queue,
      )
      .reduce((sum, demand) => sum + demand.waiting, 0);
    const decision: FleetDecision = decide({
      waiting,
      // a draining pilot takes nothing: one more may be needed
      live: livePilots(fleet).filter((pilot) => !agentsOf(pilot.id).some((id) => agents.link(id)?.draining === true))
        .length,
      idle: idleOf(fleet, notes),
      min: fleet.policy.min,
      max: fleet.policy.max,
      idleSeconds: fleet.policy.idle,
      startFailures: notes.startFailures,
      sinceFailure: (performance.now() - notes.failedAt) / 1000,
      stopping: stopping !== undefined || !engine.listeners.mayPlace(),
    });
    notes.problem = decision.problem;
    for (let i = 0; i < decision.start; i += 1) await start(fleet);
    for (const pilot of decision.drain) for (const id of agentsOf(pilot)) agents.drain(id, false, "idle");
  };

  const continueStop = async (fleet: Fleet): Promise<void> => {
    if (stopping === undefined) return;
    for (const pilot of livePilots(fleet)) {
      const ids = agentsOf(pilot.id);
      const connected = ids.filter((id) => agents.link(id)?.channel !== undefined);
      for (const id of connected)
        if (agents.link(id)?.draining === false) agents.drain(id, stopping.now, "the server stops");
      const late = performance.now() - stopping.since > STUBBORN_MS;
      if (pilot.nativeId !== "" && (connected.length === 0 || (stopping.now && late)))
        await fleet.provider.cancel([pilot.nativeId]);
    }
  };

  const look = async (): Promise<void> => {
    if (looking || closed) {
      again = true;
      return;
    }
    looking = true;
    do {
      again = false;
      for (const fleet of options.fleets) {
        const notes = memory.get(fleet)!;
        try {
          await poll(fleet);
          await carryOut(fleet, notes);
          await continueStop(fleet);
        } catch (error) {
          notes.problem = (error as Error).message;
          log(`${fleet.cluster}/${fleet.queue}: ${(error as Error).message}`);
        }
      }
      loseOrphans();
      if (stopping !== undefined && options.fleets.every((fleet) => livePilots(fleet).length === 0)) stopping.settle();
    } while (again && !closed);
    looking = false;
  };

  /** Now, and shortly after: a process takes a moment to end after its last word. */
  const soon = (): void => {
    void look();
    for (const ms of SOON_MS) setTimeout(() => void look(), ms).unref();
  };

  void importSpools().then(prune).then(look);
  const timer = setInterval(() => void look(), options.periodMs ?? 1000);

  return {
    look: soon,
    expectWork: () => {
      if (options.fleets.some((fleet) => livePilots(fleet).length === 0)) void look();
    },
    stop: (now) =>
      new Promise((resolve) => {
        stopping = { now, since: performance.now(), settle: resolve };
        if (now) for (const link of agents.links()) agents.drain(link.id, true, "the server stops");
        void look();
      }),
    problem: (cluster, queue) => {
      for (const [fleet, notes] of memory) if (fleet.cluster === cluster && fleet.queue === queue) return notes.problem;
      return null;
    },
    joined: (_agent, pilot) => {
      const known = state.pilots.get(pilot);
      if (known === undefined) return;
      for (const [fleet, notes] of memory)
        if (fleet.cluster === known.cluster && fleet.queue === known.queue) notes.startFailures = 0;
      if (known.state !== "PMGR_ACTIVE") change(pilot, "PMGR_ACTIVE");
    },
    close: () => {
      closed = true;
      clearInterval(timer);
    },
  };
};
