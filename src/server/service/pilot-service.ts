import type { Service } from "../../api/service.ts";
import type { AgentView, FleetView, PilotView } from "../../api/schemas.ts";
import { type ClustersConfig, clusterNamed } from "../../config/clusters-file.ts";
import { suggest } from "../../config/nearest.ts";
import { fromUnits } from "../../core/resources.ts";
import { knownOf } from "../../pilots/largest.ts";
import type { Shape } from "../../core/run.ts";
import type { Pilot } from "../../core/state.ts";
import { isFinalPilot } from "../../core/states.ts";
import { SlipwayError } from "../../errors.ts";
import type { Agents } from "../../agent-links/agents.ts";
import type { Engine } from "../engine.ts";
import type { Pilots } from "../../pilots/pilots.ts";
import type { Fleet } from "../../pilots/fleet.ts";
import { isoTime } from "../../views/views.ts";

/** Pilots and fleets as the API sees them. */

export interface PilotServiceOptions {
  readonly engine: Engine;
  readonly agents: Agents;
  readonly pilots: Pilots;
  readonly clusters: ClustersConfig;
  /** Throws when nothing new may be taken now. */
  readonly mayTake: () => void;
}

export interface PilotService extends Pick<Service, "addPilots" | "drainPilot" | "cancelPilot"> {
  pilotViews(): PilotView[];
  /** Throws no-such-pilot. */
  pilotView(id: number): { readonly pilot: Pilot; readonly view: PilotView };
  fleetViews(): FleetView[];
}

/** An agent of a pilot, as it is now. */
const agentViewOf = ({ state, scheduler }: Engine, agents: Agents, id: number): AgentView => {
  const agent = state.agents.get(id)!;
  const link = agents.link(id);
  const load = scheduler.loadOf(id) ?? { count: 0, backlog: 0 };
  return {
    id: String(id),
    host: agent.host,
    state:
      agent.ended > 0
        ? "gone"
        : link?.draining === true
          ? "draining"
          : link?.channel === undefined
            ? "suspect"
            : "connected",
    resources: Object.fromEntries(
      Object.entries(knownOf(agent.resources)).map(([name, units]) => [name, fromUnits(name, units)]),
    ),
    running: load.count - load.backlog,
    queued: load.backlog,
  };
};

export const createPilotService = (options: PilotServiceOptions): PilotService => {
  const { engine, agents, pilots } = options;
  const { state } = engine;

  const byPilot = (): Map<number, number[]> => {
    const found = new Map<number, number[]>();
    for (const agent of state.agents.values()) found.set(agent.pilot, [...(found.get(agent.pilot) ?? []), agent.id]);
    return found;
  };

  const pilotView = (pilot: Pilot, ids: readonly number[]): PilotView => {
    const ends = Math.min(...ids.map((id) => agents.link(id)?.endsAt ?? Infinity));
    return {
      id: String(pilot.id),
      cluster: pilot.cluster,
      queue: pilot.queue,
      state: pilot.state,
      nativeId: pilot.nativeId === "" ? null : pilot.nativeId,
      reason: pilot.reason === "" ? null : pilot.reason,
      waiting: isFinalPilot(pilot.state) ? null : (pilots.waiting(pilot.id)?.text ?? null),
      draining: !isFinalPilot(pilot.state) && pilots.isDraining(pilot),
      output: pilot.output ?? null,
      requested: isoTime(pilot.requested),
      active: isoTime(pilot.active),
      ends: Number.isFinite(ends) ? isoTime(ends) : null,
      ended: isoTime(pilot.ended),
      agents: ids.map((id) => agentViewOf(engine, agents, id)),
    };
  };

  const viewOf = (pilot: Pilot): PilotView => pilotView(pilot, byPilot().get(pilot.id) ?? []);

  const serves = (shape: Shape, { cluster, queue }: Fleet): boolean =>
    (shape.cluster ?? options.clusters.default) === cluster && (shape.queue ?? queue) === queue;

  const pilotNamed = (id: number): Pilot => {
    const pilot = state.pilots.get(id);
    if (pilot === undefined) throw new SlipwayError("no-such-pilot", { pilot: id });
    return pilot;
  };

  return {
    pilotViews: () => {
      const ids = byPilot();
      return [...state.pilots.values()].map((pilot) => pilotView(pilot, ids.get(pilot.id) ?? []));
    },
    pilotView: (id) => {
      const pilot = pilotNamed(id);
      return { pilot, view: viewOf(pilot) };
    },
    fleetViews: () => {
      const demand = engine.scheduler.demand();
      const living = new Set([...state.agents.values()].filter(({ ended }) => ended === 0).map(({ pilot }) => pilot));
      return pilots.fleets().map((fleet) => {
        const { cluster, queue, policy } = fleet;
        const live = [...state.pilots.values()].filter(
          (pilot) => pilot.cluster === cluster && pilot.queue === queue && !isFinalPilot(pilot.state),
        );
        return {
          cluster,
          queue,
          strategy: policy.strategy,
          pilots: live.length,
          active: live.filter(({ id }) => living.has(id)).length,
          draining: live.filter((pilot) => living.has(pilot.id) && pilots.isDraining(pilot)).length,
          min: policy.min,
          max: policy.max,
          waiting: demand.filter(({ shape }) => serves(shape, fleet)).reduce((sum, { waiting }) => sum + waiting, 0),
          problem: pilots.problem(cluster, queue),
          failure: pilots.failure(cluster, queue),
          decision: pilots.decision(cluster, queue),
        };
      });
    },
    addPilots: async ({ cluster: name, queue: wanted, count }) => {
      options.mayTake();
      const cluster = clusterNamed(options.clusters, name);
      const queue = wanted ?? [...cluster.queues.keys()][0] ?? "";
      const ids = pilots.add(cluster.name, queue, count);
      if (ids === undefined)
        throw new SlipwayError("no-such-queue", {
          cluster: cluster.name,
          queue,
          suggestion: suggest(queue, cluster.queues.keys()),
        });
      await engine.whenDurable();
      return ids.map((id) => viewOf(state.pilots.get(id)!));
    },
    drainPilot: async (id, reason) => {
      const pilot = pilotNamed(id);
      if (!isFinalPilot(pilot.state)) await pilots.drain(pilot, reason);
      await engine.whenDurable();
      return viewOf(pilot);
    },
    cancelPilot: async (id, reason) => {
      const pilot = pilotNamed(id);
      if (!isFinalPilot(pilot.state)) await pilots.cancel(pilot, reason);
      await engine.whenDurable();
      return viewOf(pilot);
    },
  };
};
