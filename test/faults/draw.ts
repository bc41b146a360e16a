import { type Draft, FEATURES, type Feature, addFeatures, mixIn } from "./features.ts";
import { drawRun } from "./draw-run.ts";
import { type Random, createRandom } from "./random.ts";
import { DEFAULT_LOSSES, type Moment, type Schedule, type Step } from "./schedule.ts";

/** Draws a schedule from a seed alone. */

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
    // agents started by hand have a long lease, so they are never killed
    [
      byHand === 0 ? 2 : 0,
      () => ({ kind: "power", restart: random.chance(0.6) ? 0 : random.int(50, 900), bytes: "all", names: "kept" }),
    ],
    [1, () => ({ kind: "kill-client", lines: random.pick([2000, 20_000, 100_000]), after: random.int(50, 900) })],
    [1, () => ({ kind: "cancel", nth: random.int(0, 99) })],
    [1, () => ({ kind: "down", now: random.chance(0.5) })],
  ])();

/** The plain trouble draws the same numbers whatever else is wanted: each feature draws from its own fork. */
export const drawSchedule = (seed: number, wanted: readonly Feature[] = FEATURES): Schedule => {
  const random = createRandom(seed);
  const shape = random.fork("shape");
  const work = random.fork("work");
  const trouble = random.fork("trouble");
  const [pilots, byHand, cpus] = [shape.int(1, 3), shape.int(0, 2), shape.int(1, 4)];
  const slots = (pilots + byHand) * cpus;
  const proxyForAll = shape.chance(0.6);
  const spawner = shape.chance(0.8) ? "auto" : "node";
  const runs = Array.from({ length: work.int(1, 4) }, (_, i) => drawRun(work, i === 0 ? 0 : work.int(0, 2000), slots));
  const steps = Array.from({ length: trouble.int(2, 6) }, () => ({
    ...drawStep(trouble, slots, byHand),
    pause: trouble.int(20, 500),
  }));
  const draft: Draft = {
    slots,
    runs,
    byHand,
    losses: DEFAULT_LOSSES,
    disk: undefined,
    apiProxy: false,
    replay: shape.chance(0.4),
    extra: [],
    last: [],
    patient: true,
  };
  const retry = shape.chance(0.5);
  const features = addFeatures(random, wanted, draft);
  return {
    seed,
    features,
    pilots,
    byHand: draft.byHand,
    cpus,
    proxyForAll,
    spawner,
    losses: draft.losses,
    keepHistory: random.fork("history").chance(0.5),
    disk: draft.disk,
    apiProxy: draft.apiProxy,
    runs: draft.runs,
    steps: mixIn(random.fork("mix"), steps, draft),
    replay: draft.replay,
    retry,
  };
};
