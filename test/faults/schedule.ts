import { type Random, createRandom } from "./random.ts";

/** What will happen, drawn from a seed alone. How it falls out depends on the machine; what must hold does not. */

/** A run, and what its tasks do. */
export interface RunPlan {
  /** Milliseconds after the start at which it is submitted. */
  readonly at: number;
  readonly tasks: number;
  /** Each task works so long. */
  readonly ms: number;
  /** Every so many-th task fails in its first `times` attempts; 0: none. */
  readonly every: number;
  readonly times: number;
  readonly retries: number;
  /** Tasks of a second group that begin when all of the first have ended well. */
  readonly behind: number;
  /** Items travel as a stream of lines, not as a range. */
  readonly lines: boolean;
  readonly by: "sdk" | "cli";
  /** Seconds between a failure and the next attempt. */
  readonly retryDelay?: number;
  /** Seconds after which a task is ended. */
  readonly timeLimit?: number;
}

export type Moment =
  | { readonly when: "now" }
  /** So long after a submission of this run was begun. */
  | { readonly when: "submit"; readonly run: RunPlan; readonly after: number }
  /** When so many more tasks have been executed. */
  | { readonly when: "results"; readonly count: number }
  | { readonly when: "compaction"; readonly after: number }
  /** Twice: now, and again so long after the next start was begun. */
  | { readonly when: "start"; readonly after: number };

export type Step =
  | { readonly kind: "kill-server"; readonly moment: Moment; readonly restart: number; readonly ups: number }
  | { readonly kind: "kill-agent" | "term-agent" | "kill-spawner"; readonly nth: number }
  | { readonly kind: "stop-server"; readonly ms: number }
  | { readonly kind: "stop-agent"; readonly nth: number; readonly ms: number }
  | { readonly kind: "cut" | "drop" | "compact" }
  /** Server and agents are killed in the same moment, as if the machine had lost its power. */
  | { readonly kind: "power"; readonly restart: number }
  /** The next fsync in the journal fails. */
  | { readonly kind: "fsync" }
  | { readonly kind: "half-open"; readonly closed: "agents" | "server"; readonly ms: number }
  | { readonly kind: "freeze"; readonly ms: number; readonly cut: boolean }
  | { readonly kind: "delay"; readonly each: number; readonly ms: number }
  | { readonly kind: "split"; readonly ms: number }
  | { readonly kind: "kill-client"; readonly lines: number; readonly after: number }
  | { readonly kind: "cancel"; readonly nth: number }
  | { readonly kind: "down"; readonly now: boolean };

export interface Schedule {
  readonly seed: number;
  /** Pilots of the fleet, agents by hand behind the proxy, cores of each. */
  readonly pilots: number;
  readonly byHand: number;
  readonly cpus: number;
  /** The pilots' agents go through the proxy too, as soon as they read the endpoint again. */
  readonly proxyForAll: boolean;
  readonly spawner: "auto" | "node";
  readonly runs: readonly RunPlan[];
  /** Each begins so long after the one before has ended. */
  readonly steps: readonly (Step & { readonly pause: number })[];
  /** At the end the server is killed once more, and its successor must tell the same of every task. */
  readonly replay: boolean;
  /** At the end failed runs are retried, and the server is killed in the middle of it. */
  readonly retry: boolean;
}

/** The cost of a task that does nothing, on a slow machine; with it the work lasts about as long as the trouble does. */
const OVERHEAD_MS = 4;
const MOST_TASKS = 700;

const drawRun = (random: Random, at: number, slots: number): RunPlan => {
  const every = random.chance(0.4) ? random.int(3, 9) : 0;
  const retries = every > 0 ? random.int(0, 2) : 0;
  const ms = random.weighed([
    [2, 0],
    [3, random.int(2, 20)],
    [2, random.int(20, 100)],
  ]);
  const lasting = random.int(200, 2500);
  return {
    at,
    tasks: random.chance(0.1)
      ? random.int(1, 4)
      : Math.max(1, Math.min(MOST_TASKS, Math.round((lasting * slots) / (ms + OVERHEAD_MS * slots)))),
    ms,
    every,
    // mostly they succeed in the end
    times:
      every > 0
        ? random.weighed([
            [3, retries],
            [1, 99],
          ] as const)
        : 0,
    retries,
    behind: random.chance(0.3) ? random.int(1, 20) : 0,
    lines: random.chance(0.3),
    by: random.chance(0.25) ? "cli" : "sdk",
  };
};

const drawMoment = (random: Random, slots: number): Moment =>
  random.weighed<() => Moment>([
    [3, () => ({ when: "now" })],
    [3, () => ({ when: "submit", run: drawRun(random, 0, slots), after: random.int(0, 25) })],
    [4, () => ({ when: "results", count: random.int(1, 60) })],
    [2, () => ({ when: "compaction", after: random.int(0, 250) })],
    [1, () => ({ when: "start", after: random.int(20, 500) })],
  ])();

const drawStep = (random: Random, slots: number, byHand: number): Step =>
  random.weighed<() => Step>([
    [
      8,
      () => ({
        kind: "kill-server",
        moment: drawMoment(random, slots),
        restart: random.chance(0.6) ? 0 : random.int(50, 900),
        ups: random.chance(0.15) ? random.int(2, 3) : 1,
      }),
    ],
    [4, () => ({ kind: "kill-agent", nth: random.int(0, 99) })],
    [2, () => ({ kind: "term-agent", nth: random.int(0, 99) })],
    [1, () => ({ kind: "kill-spawner", nth: random.int(0, 99) })],
    [2, () => ({ kind: "stop-server", ms: random.int(50, 1200) })],
    [2, () => ({ kind: "stop-agent", nth: random.int(0, 99), ms: random.int(50, 1200) })],
    [3, () => ({ kind: "cut" })],
    [1, () => ({ kind: "drop" })],
    [2, () => ({ kind: "half-open", closed: random.pick(["agents", "server"] as const), ms: random.int(50, 800) })],
    [2, () => ({ kind: "freeze", ms: random.int(50, 1000), cut: random.chance(0.5) })],
    [2, () => ({ kind: "delay", each: random.int(5, 80), ms: random.int(200, 900) })],
    [2, () => ({ kind: "split", ms: random.int(200, 900) })],
    [2, () => ({ kind: "compact" })],
    [2, () => ({ kind: "fsync" })],
    // the lease of agents by hand is long: those are never killed
    [byHand === 0 ? 2 : 0, () => ({ kind: "power", restart: random.chance(0.6) ? 0 : random.int(50, 900) })],
    [1, () => ({ kind: "kill-client", lines: random.pick([2000, 20_000, 100_000]), after: random.int(50, 900) })],
    [1, () => ({ kind: "cancel", nth: random.int(0, 99) })],
    [1, () => ({ kind: "down", now: random.chance(0.5) })],
  ])();

export const drawSchedule = (seed: number): Schedule => {
  const random = createRandom(seed);
  const shape = random.fork("shape");
  const work = random.fork("work");
  const trouble = random.fork("trouble");
  const [pilots, byHand, cpus] = [shape.int(1, 3), shape.int(0, 2), shape.int(1, 4)];
  const slots = (pilots + byHand) * cpus;
  return {
    seed,
    pilots,
    byHand,
    cpus,
    proxyForAll: shape.chance(0.6),
    spawner: shape.chance(0.8) ? "auto" : "node",
    runs: Array.from({ length: work.int(1, 4) }, (_, i) => drawRun(work, i === 0 ? 0 : work.int(0, 2000), slots)),
    steps: Array.from({ length: trouble.int(2, 6) }, () => ({
      ...drawStep(trouble, slots, byHand),
      pause: trouble.int(20, 500),
    })),
    replay: shape.chance(0.4),
    retry: shape.chance(0.5),
  };
};

const showRun = (run: RunPlan): string =>
  `${run.tasks} tasks of ${run.ms} ms` +
  (run.behind > 0 ? ` and ${run.behind} behind them` : "") +
  (run.every > 0 ? `, every ${run.every}th fails ${run.times} times, ${run.retries} retries` : "") +
  `${run.lines ? ", lines" : ""} (${run.by})`;

const showStep = ({ kind, pause, ...facts }: Step & { readonly pause: number }): string => {
  const rest = Object.entries(facts).map(([key, value]) => {
    if (typeof value !== "object") return `${key} ${value}`;
    const { when, run, ...more } = value as Record<string, unknown>;
    return `at ${when}${run === undefined ? "" : ` of ${showRun(run as RunPlan)}`} ${Object.values(more).join(" ")}`.trim();
  });
  return `+${pause} ms ${kind}${rest.length === 0 ? "" : `: ${rest.join(", ")}`}`;
};

/** For people; the seed alone says it all. */
export const showSchedule = (schedule: Schedule): string =>
  [
    `seed ${schedule.seed}: ${schedule.pilots} pilots and ${schedule.byHand} agents by hand, ${schedule.cpus} cpus each` +
      `${schedule.proxyForAll ? ", all through the proxy" : ""}${schedule.spawner === "node" ? ", spawner in Node" : ""}` +
      `${schedule.retry ? ", failed runs retried" : ""}${schedule.replay ? ", replayed at the end" : ""}`,
    ...schedule.runs.map((run) => `  run at ${run.at} ms: ${showRun(run)}`),
    ...schedule.steps.map((step) => `  ${showStep(step)}`),
  ].join("\n");
