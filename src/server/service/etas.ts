import { type Group, type Run, type Shape, isFinishedRun, keyOf, shapeOfRow } from "../../core/run.ts";
import type { Resources } from "../../core/resources.ts";
import type { Pilot } from "../../core/state.ts";
import { isFinalPilot } from "../../core/states.ts";
import type { FleetFacts, Places } from "../../eta/capacity.ts";
import { type Eta, etaSteps } from "../../eta/eta.ts";
import { PIECE, type Steps, until } from "../../eta/steps.ts";
import { createTurns } from "../../eta/turns.ts";
import { slotsOf } from "../../fleet/demand.ts";
import type { Fleet } from "../../pilots/fleet.ts";
import { concurrency } from "../../scheduler/capacity.ts";
import type { EtaDates } from "../../views/views.ts";
import type { ServiceContext } from "./context.ts";

/** When runs end, for whoever looks at them. Estimates are kept for a moment: looking often must cost little. */
export interface Etas {
  of(run: Run): EtaDates;
}

/** An estimate is good for this long, and for this many times what it cost. */
const KEPT_MS = 1000;
const KEPT_FOR_COST = 50;
/** All estimates together take no more of each second than this; beyond it, bounds have to do. */
const MOST_MS = 50;
const MOST_KEPT = 10_000;
/** Most runs of one task are over by then: nobody works out when they will be. */
const YOUNG_MS = 100;
/** And so much later for each group: an estimate, about a microsecond for each, takes no more than a tenth of the time before it. */
const YOUNG_MS_FOR_GROUP = 0.01;

const ENDED: Eta = { reason: "it has ended" };

interface Kept {
  readonly eta: Exclude<EtaDates, undefined>;
  readonly until: number;
}

const highest = (run: Run): number => run.groups.reduce((most, { spec }) => Math.max(most, spec.priority), -Infinity);

const isYoung = ({ submitted, groups }: Run, now: number): boolean =>
  now < submitted + YOUNG_MS + groups.length * YOUNG_MS_FOR_GROUP;

const leftOf = ({ count, done, failed, canceled }: Group): number => count - done - failed - canceled;

/** How long each pilot that has run waited in the manager, and what waits there now; by queue. */
const pilotFacts = (
  pilots: Iterable<Pilot>,
  now: number,
): ReadonlyMap<string, { readonly waits: number[]; readonly pending: number[] }> => {
  const facts = new Map<string, { waits: number[]; pending: number[] }>();
  for (const { cluster, queue, requested, active, state } of pilots) {
    const key = JSON.stringify([cluster, queue]);
    let of = facts.get(key);
    if (of === undefined) facts.set(key, (of = { waits: [], pending: [] }));
    if (active > 0) of.waits.push(Math.max(0, active - requested));
    else if (!isFinalPilot(state)) of.pending.push(Math.max(0, now - requested));
  }
  return facts;
};

const createPlaces = (context: ServiceContext, now: number): Omit<Places, "aheadMs"> => {
  const { engine, agents, pilots, clusters, largest } = context;
  const { state } = engine;
  const pilotsBy = pilotFacts(state.pilots.values(), now);
  const taking: { readonly resources: Resources; readonly cluster: string; readonly queue: string }[] = [];
  for (const { id, channel, draining } of agents.links()) {
    const agent = channel === undefined || draining ? undefined : state.agents.get(id);
    if (agent === undefined) continue;
    const { cluster = clusters.default, queue = "" } = state.pilots.get(agent.pilot) ?? agent;
    taking.push({ resources: agent.resources, cluster, queue });
  }
  const known = new Map<string, number>();

  const onAgents = (shape: Shape): number => {
    const cluster = shape.cluster ?? clusters.default;
    const able = taking.filter(
      (agent) => agent.cluster === cluster && (shape.queue === undefined || agent.queue === shape.queue),
    );
    let sum = able.reduce((all, { resources }) => all + concurrency(resources, shape.resources), 0);
    const machine = clusters.clusters.get(cluster)?.type === "local" ? largest.get(cluster) : undefined;
    // agents of this machine share what it has
    if (machine !== undefined) sum = Math.min(sum, concurrency(machine, shape.resources));
    return shape.ranks === undefined ? sum : Math.floor(sum / shape.ranks.count);
  };

  const factsOf = (fleet: Fleet): FleetFacts => {
    const { waits = [], pending = [] } = pilotsBy.get(JSON.stringify([fleet.cluster, fleet.queue])) ?? {};
    const offer = fleet.offer ?? largest.get(fleet.cluster);
    return {
      name: `${fleet.cluster}/${fleet.queue}`,
      here: clusters.clusters.get(fleet.cluster)?.type === "local",
      atOnce: (shape) => slotsOf(shape, { nodes: fleet.nodes, offer, untold: fleet.offer === undefined }),
      pending,
      waits,
    };
  };

  return {
    atOnce: (shape) => {
      const key = keyOf(shape);
      let atOnce = known.get(key);
      if (atOnce === undefined) known.set(key, (atOnce = onAgents(shape)));
      return atOnce;
    },
    fleets: (shape) => pilots.able(shape).map(factsOf),
    isOver: (id) => {
      const run = state.runs.get(id);
      return run === undefined || isFinishedRun(run);
    },
  };
};

export const createEtas = (context: ServiceContext): Etas => {
  const { engine, expected } = context;
  const { state } = engine;
  const kept = new Map<number, Kept>();
  let places: { readonly of: ReturnType<typeof createPlaces>; readonly until: number } | undefined;
  /** Runs that had not ended when `places` were made: a server may remember thousands that have. */
  let open: readonly Run[] = [];
  const turns = createTurns<Eta>(
    () => performance.now(),
    (next) => void setImmediate(next).unref(),
  );
  /** Milliseconds spent on estimates since `since`. */
  let spent = 0;
  let since = 0;

  const placesAt = (now: number): ReturnType<typeof createPlaces> => {
    if (places === undefined || now >= places.until) {
      places = { of: createPlaces(context, now), until: now + KEPT_MS };
      open = [...state.live];
    }
    return places.of;
  };

  /** Runs of higher priority, and those that came first, get their slots first. */
  function* aheadMs(run: Run, at: ReturnType<typeof createPlaces>): Steps<number> {
    const priority = highest(run);
    const clusters = new Set(run.groups.map(({ spec }) => spec.cluster ?? context.clusters.default));
    let sum = 0;
    for (const other of open) {
      if (other === run || isFinishedRun(other)) continue;
      const first = highest(other);
      if (first < priority || (first === priority && other.id > run.id)) continue;
      for (const [n, group] of other.groups.entries()) {
        if (n % PIECE === 0) yield;
        const left = clusters.has(group.spec.cluster ?? context.clusters.default) ? leftOf(group) : 0;
        const atOnce = left === 0 ? 0 : at.atOnce(shapeOfRow(group, group.first));
        if (atOnce > 0) sum += (left * expected.ofGroup(other, group)) / atOnce;
      }
    }
    return sum;
  }

  const dated = (eta: Eta, now: number): Kept["eta"] => {
    if ("reason" in eta) return eta;
    const { p10, p50, p90 } = eta.estimate;
    return { dates: { p10: now + p10, p50: now + p50, p90: now + p90 } };
  };

  function* stepsFor(run: Run, now: number, rough: boolean): Steps<Eta> {
    const at = placesAt(now);
    const ahead = rough ? 0 : yield* aheadMs(run, at);
    return yield* etaSteps(run, now, expected, { ...at, aheadMs: ahead }, rough);
  }

  return {
    of: (run) => {
      if (isFinishedRun(run)) {
        kept.delete(run.id);
        return undefined;
      }
      const now = engine.clock();
      const known = kept.get(run.id);
      if (known !== undefined && now < known.until) return known.eta;
      const before = known?.eta ?? { reason: "it is being worked out" };
      if (turns.isUnderWay(run.id) || isYoung(run, now)) return before;
      if (now >= since + 1000) [since, spent] = [now, 0];
      const rough = spent > MOST_MS;
      // better an old estimate than a rough one
      if (rough && known !== undefined) return known.eta;
      const steps = until(stepsFor(run, now, rough), () => isFinishedRun(run), ENDED);
      turns.work(run.id, steps, (eta, cost) => {
        spent += cost;
        if (kept.size >= MOST_KEPT) kept.clear();
        if (!isFinishedRun(run))
          kept.set(run.id, { eta: dated(eta, now), until: now + Math.max(KEPT_MS, cost * KEPT_FOR_COST) });
      });
      return kept.get(run.id)?.eta ?? before;
    },
  };
};
