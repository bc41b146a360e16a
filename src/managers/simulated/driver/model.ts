import type { JobOutcome } from "../../provider.ts";
import { draw, drawDuration } from "./draws.ts";
import type { SimulatedAsk } from "../options.ts";
import type { Simulation } from "../simulation.ts";

/**
 * A batch system as a pure function of what happens to it: nodes, jobs in their order, and the trouble that each job
 * will meet, which its number alone decides. Whoever carries out the effects reports when a job's processes are gone.
 *
 *   queued ─► active ─► ended
 *     ▲         │ ending: asked to end, waits for its processes
 *   held        ▼
 *             ended
 */

export interface SimulatedJob {
  readonly id: number;
  readonly name: string;
  readonly directory: string;
  readonly command: readonly string[];
  /** Of an element of an array: the number of its first one, and its place. */
  readonly array?: { readonly first: number; readonly element: number };
  readonly nodes: number;
  /** Of each node. */
  readonly cores: number;
  readonly walltimeMs?: number;
  readonly eligibleAt: number;
  readonly state: "held" | "queued" | "active" | "ended";
  readonly hosts: readonly string[];
  readonly startedAt?: number;
  /** How it will have ended once its processes are gone. */
  readonly ending?: { readonly outcome: JobOutcome; readonly reason: string; readonly hardAt: number };
  readonly outcome?: JobOutcome;
  readonly exitCode?: number;
  readonly reason?: string;
  /** `pid:start` of its processes, one per host; whoever starts them records them here. */
  readonly processes: readonly string[];
}

export interface SimulatedState {
  readonly version: 1;
  readonly next: number;
  /** Nodes that are away, and until when. */
  readonly away: Readonly<Record<string, number>>;
  readonly jobs: readonly SimulatedJob[];
}

export type Effect =
  | { readonly do: "start"; readonly job: number }
  | { readonly do: "end"; readonly job: number; readonly isHard: boolean };

export interface Step {
  readonly state: SimulatedState;
  readonly effects: readonly Effect[];
}

export const EMPTY: SimulatedState = { version: 1, next: 1, away: {}, jobs: [] };

/** Ended jobs that are remembered: older ones are unknown. */
const MOST_ENDED = 1000;

export const nodeNames = (sim: Simulation): string[] => Array.from({ length: sim.nodes }, (_, at) => `sim${at + 1}`);

const changed = (state: SimulatedState, id: number, change: Partial<SimulatedJob>): SimulatedState => ({
  ...state,
  jobs: state.jobs.map((job) => (job.id === id ? { ...job, ...change } : job)),
});

/** Cores in use by host. */
export const usedCores = (state: SimulatedState): Map<string, number> => {
  const used = new Map<string, number>();
  for (const job of state.jobs)
    if (job.state === "active") for (const host of job.hosts) used.set(host, (used.get(host) ?? 0) + job.cores);
  return used;
};

/** Why such a job is refused; undefined: it is taken. */
export const refusal = (sim: Simulation, ask: SimulatedAsk): string | undefined => {
  if (ask.partition !== undefined && !sim.partitions.includes(ask.partition))
    return `invalid partition: ${ask.partition}; there is ${sim.partitions.join(", ")}`;
  if (ask.nodes > sim.nodes) return `it asks for ${ask.nodes} nodes; there are ${sim.nodes}`;
  if ((ask.cores ?? 1) > sim.coresPerNode)
    return `it asks for ${ask.cores} cores on a node; each has ${sim.coresPerNode}`;
  return undefined;
};

export const submit = (
  sim: Simulation,
  state: SimulatedState,
  job: Pick<SimulatedJob, "name" | "directory" | "command" | "array">,
  ask: SimulatedAsk,
  now: number,
):
  | { readonly state: SimulatedState; readonly id: number }
  | { readonly state: SimulatedState; readonly no: string } => {
  const id = state.next;
  const counted = { ...state, next: id + 1 };
  const no = refusal(sim, ask);
  if (no !== undefined) return { state: counted, no };
  if (draw(sim.seed, id, "refusal") < sim.refusalRate)
    return { state: counted, no: "the manager is out of sorts (simulated)" };
  const made: SimulatedJob = {
    ...job,
    id,
    nodes: ask.nodes,
    cores: ask.cores ?? sim.coresPerNode,
    ...(ask.walltimeMs === undefined ? {} : { walltimeMs: ask.walltimeMs }),
    eligibleAt: now + Math.max(ask.beginMs, drawDuration(sim.queueWaitMs, sim.seed, id, "wait")),
    state: ask.isHeld ? "held" : "queued",
    hosts: [],
    processes: [],
  };
  return { state: { ...counted, jobs: [...state.jobs, made] }, id };
};

/** All of them or none; each element is a job with a number of its own. */
export const submitArray = (
  sim: Simulation,
  state: SimulatedState,
  job: Pick<SimulatedJob, "name" | "directory" | "command">,
  ask: SimulatedAsk,
  count: number,
  now: number,
):
  | { readonly state: SimulatedState; readonly ids: readonly number[] }
  | { readonly state: SimulatedState; readonly no: string } => {
  const first = state.next;
  let next = state;
  const ids: number[] = [];
  for (let element = 0; element < count; element += 1) {
    const made = submit(sim, next, { ...job, array: { first, element } }, ask, now);
    if ("no" in made) return { state: { ...state, next: made.state.next }, no: made.no };
    next = made.state;
    ids.push(made.id);
  }
  return { state: next, ids };
};

/** What will happen to a job, and how long after its start; undefined: nothing. */
const troubleOf = (sim: Simulation, id: number): { kind: "preempted" | "lost"; afterMs: number } | undefined => {
  const afterMs = (purpose: string): number => drawDuration(sim.troubleAfterMs, sim.seed, id, purpose);
  if (draw(sim.seed, id, "loss") < sim.nodeLossRate) return { kind: "lost", afterMs: afterMs("loss after") };
  if (draw(sim.seed, id, "preemption") < sim.preemptionRate)
    return { kind: "preempted", afterMs: afterMs("preemption after") };
  return undefined;
};

/** Asks an active job to end; one that was asked before keeps its first reason. */
const ask = (
  sim: Simulation,
  step: Step,
  job: SimulatedJob,
  outcome: JobOutcome,
  reason: string,
  now: number,
  isHard = false,
): Step => ({
  state: changed(step.state, job.id, { ending: { outcome, reason, hardAt: now + sim.graceMs } }),
  effects: [...step.effects, { do: "end", job: job.id, isHard }],
});

const loseNode = (sim: Simulation, step: Step, node: string, now: number): Step => {
  let next: Step = {
    ...step,
    state: { ...step.state, away: { ...step.state.away, [node]: now + sim.repairMs } },
  };
  for (const job of step.state.jobs)
    if (job.state === "active" && job.hosts.includes(node))
      next = ask(sim, next, job, "lost", `node ${node} went away (simulated)`, now, true);
  return next;
};

const findById = (state: SimulatedState, id: number): SimulatedJob | undefined =>
  state.jobs.find((job) => job.id === id);

const endDue = (sim: Simulation, step: Step, now: number): Step => {
  let next = step;
  for (const { id, state } of step.state.jobs) {
    // thousands may wait, and nothing begins here
    if (state !== "active") continue;
    const job = findById(next.state, id)!;
    if (job.state !== "active") continue;
    if (job.ending !== undefined) {
      if (now >= job.ending.hardAt)
        next = {
          state: changed(next.state, id, { ending: { ...job.ending, hardAt: now + sim.graceMs } }),
          effects: [...next.effects, { do: "end", job: id, isHard: true }],
        };
      continue;
    }
    const since = now - job.startedAt!;
    const trouble = troubleOf(sim, id);
    if (trouble !== undefined && since >= trouble.afterMs)
      next =
        trouble.kind === "lost"
          ? loseNode(sim, next, job.hosts[Math.floor(draw(sim.seed, id, "which node") * job.hosts.length)]!, now)
          : ask(sim, next, job, "preempted", "something else needed its place (simulated)", now);
    else if (job.walltimeMs !== undefined && since >= job.walltimeMs + sim.walltimeDelayMs)
      next = ask(sim, next, job, "timeout", `its walltime of ${job.walltimeMs / 1000} s was over`, now);
  }
  return next;
};

const startDue = (sim: Simulation, step: Step, now: number): Step => {
  let { state } = step;
  const effects = [...step.effects];
  const used = usedCores(state);
  const up = nodeNames(sim).filter((node) => state.away[node] === undefined);
  for (const job of state.jobs) {
    if (job.state !== "queued" || job.eligibleAt > now) continue;
    const free = up.filter((node) => (used.get(node) ?? 0) + job.cores <= sim.coresPerNode);
    // in order: a small one does not overtake a large one that waits
    if (free.length < job.nodes) break;
    const hosts = free.slice(0, job.nodes);
    if (draw(sim.seed, job.id, "failure") < sim.failureRate) {
      const reason = `${hosts[0]} could not start it (simulated)`;
      state = changed(state, job.id, { state: "ended", outcome: "start-failed", reason, hosts });
      continue;
    }
    for (const host of hosts) used.set(host, (used.get(host) ?? 0) + job.cores);
    state = changed(state, job.id, { state: "active", hosts, startedAt: now });
    effects.push({ do: "start", job: job.id });
  }
  return { state, effects };
};

/** All that is due by now: nodes that are back, jobs that must end, jobs that may start. */
export const advance = (sim: Simulation, state: SimulatedState, now: number): Step => {
  const away = Object.fromEntries(Object.entries(state.away).filter(([, until]) => until > now));
  return startDue(sim, endDue(sim, { state: { ...state, away }, effects: [] }, now), now);
};

/** One that waits ends at once, one that runs is asked to; one that has ended stays as it is. */
export const cancel = (sim: Simulation, state: SimulatedState, ids: readonly number[], now: number): Step => {
  let step: Step = { state, effects: [] };
  for (const id of new Set(ids)) {
    const job = findById(step.state, id);
    if (job === undefined || job.state === "ended") continue;
    if (job.state === "active") {
      if (job.ending === undefined) step = ask(sim, step, job, "cancelled", "cancelled", now);
    } else step = { ...step, state: changed(step.state, id, { state: "ended", outcome: "cancelled" }) };
  }
  return step;
};

/** The last process of a job is gone; without a code, how is unknown. A job that has already ended stays as it is. */
export const processesGone = (state: SimulatedState, id: number, code: number | undefined): SimulatedState => {
  const job = findById(state, id);
  if (job?.state !== "active") return state;
  const own: Partial<SimulatedJob> = {
    outcome: code === 0 ? "done" : code === undefined ? "unknown" : "failed",
    ...(code === undefined ? {} : { exitCode: code }),
  };
  const end = job.ending === undefined ? own : { outcome: job.ending.outcome, reason: job.ending.reason };
  const next = changed(state, id, { state: "ended", ...end });
  const ended = next.jobs.filter(({ state: word }) => word === "ended");
  const forgotten = new Set(ended.slice(0, Math.max(0, ended.length - MOST_ENDED)));
  return forgotten.size === 0 ? next : { ...next, jobs: next.jobs.filter((one) => !forgotten.has(one)) };
};

export const noteProcesses = (state: SimulatedState, id: number, processes: readonly string[]): SimulatedState =>
  changed(state, id, { processes });
