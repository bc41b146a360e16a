import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { draw, drawDuration } from "../../../../src/managers/simulated/driver/draws.ts";
import * as model from "../../../../src/managers/simulated/driver/model.ts";
import { readOptions, simulatedOptions } from "../../../../src/managers/simulated/options.ts";
import { QUIET, type Simulation } from "../../../../src/managers/simulated/simulation.ts";

const rate = fc.constantFrom(0, 0.3, 1);
const simulations: fc.Arbitrary<Simulation> = fc.record({
  nodes: fc.integer({ min: 1, max: 4 }),
  coresPerNode: fc.integer({ min: 1, max: 4 }),
  partitions: fc.constant(["default"]),
  queueWaitMs: fc.constantFrom(0, 1000),
  refusalRate: fc.constantFrom(0, 0.3),
  failureRate: rate,
  preemptionRate: rate,
  nodeLossRate: rate,
  troubleAfterMs: fc.constantFrom(0, 500, 5000),
  repairMs: fc.constantFrom(0, 3000),
  walltimeDelayMs: fc.constantFrom(0, 500),
  graceMs: fc.constantFrom(0, 1000),
  seed: fc.integer(),
});

type Act =
  | { readonly do: "submit"; readonly nodes: number; readonly cores: number; readonly walltimeMs: number }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "cancel" | "gone"; readonly job: number };

const job = fc.integer({ min: 1, max: 12 });
const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant("submit" as const),
      nodes: fc.integer({ min: 1, max: 5 }),
      cores: fc.integer({ min: 1, max: 5 }),
      walltimeMs: fc.constantFrom(100, 10_000),
    }),
    fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 0, max: 3000 }) }),
    fc.record({ do: fc.constantFrom("cancel" as const, "gone" as const), job }),
  ),
  { maxLength: 60 },
);

/** Plays a history and checks, after every step, what must always hold. */
const play = (sim: Simulation, history: readonly Act[]): { state: model.SimulatedState; starts: number[] } => {
  let state = model.EMPTY;
  let now = 0;
  const starts: number[] = [];
  const ended = new Map<number, string>();

  const check = (): void => {
    for (const cores of model.usedCores(state).values()) expect(cores).toBeLessThanOrEqual(sim.coresPerNode);
    for (const one of state.jobs) {
      if (one.state === "active") {
        expect(new Set(one.hosts).size).toBe(one.nodes);
        for (const host of one.hosts) expect(model.nodeNames(sim)).toContain(host);
      }
      expect(one.state === "ended").toBe(one.outcome !== undefined);
      const end = JSON.stringify(one);
      if (one.state === "ended") expect(ended.get(one.id) ?? end).toBe(end);
      if (one.state === "ended") ended.set(one.id, end);
    }
    expect(new Set(starts).size).toBe(starts.length);
  };
  const take = ({ state: next, effects }: model.Step): void => {
    state = next;
    check();
    for (const effect of effects)
      if (effect.do === "start") starts.push(effect.job);
      else if (effect.isHard) state = model.processesGone(state, effect.job, undefined);
    check();
  };
  for (const act of history) {
    if (act.do === "submit") {
      const ask = { nodes: act.nodes, cores: act.cores, walltimeMs: act.walltimeMs, isHeld: false, beginMs: 0 };
      ({ state } = model.submit(sim, state, { name: "n", directory: "/", command: [] }, ask, now));
    } else if (act.do === "wait") now += act.ms;
    else if (act.do === "cancel") take(model.cancel(sim, state, [act.job], now));
    else state = model.processesGone(state, act.job, 0);
    take(model.advance(sim, state, now));
  }
  // everything ends: by its walltime, and by force if necessary
  for (let round = 0; round < 400 && state.jobs.some(({ state: word }) => word !== "ended"); round += 1) {
    now += 5000;
    take(model.advance(sim, state, now));
  }
  expect(state.jobs.filter(({ state: word }) => word !== "ended")).toEqual([]);
  return { state, starts };
};

describe("the simulated batch system", () => {
  it("never gives away more than there is, starts each job at most once, ends each exactly once", () => {
    fc.assert(
      fc.property(simulations, acts, (sim, history) => void play(sim, history)),
      { numRuns: 200 },
    );
  });

  it("tells the same history for the same seed", () => {
    fc.assert(
      fc.property(simulations, acts, (sim, history) => {
        expect(play(sim, history)).toEqual(play(sim, history));
      }),
      { numRuns: 50 },
    );
  });

  it("does not change its mind when it is looked at more often", () => {
    const sim = { ...QUIET, preemptionRate: 0.5, failureRate: 0.3, queueWaitMs: 700, troubleAfterMs: 2000, nodes: 4 };
    const run = (periodMs: number): (string | undefined)[] => {
      let state = model.EMPTY;
      for (let at = 0; at < 4; at += 1) {
        const ask = { nodes: 1, walltimeMs: 60_000, isHeld: false, beginMs: 0 };
        ({ state } = model.submit(sim, state, { name: "n", directory: "/", command: [] }, ask, 0));
      }
      for (let now = 0; now <= 200_000; now += periodMs) {
        const step = model.advance(sim, state, now);
        ({ state } = step);
        for (const effect of step.effects)
          if (effect.do === "end") state = model.processesGone(state, effect.job, undefined);
      }
      return state.jobs.map(({ outcome }) => outcome);
    };
    expect(run(10)).toEqual(run(1000));
    expect(new Set(run(1000)).size).toBeGreaterThan(1);
  });

  it("draws evenly, and differently for each purpose", () => {
    const values = Array.from({ length: 2000 }, (_, n) => draw(7, n, "failure"));
    expect(values.every((value) => value >= 0 && value < 1)).toBe(true);
    for (const part of [0.1, 0.5, 0.9])
      expect(Math.abs(values.filter((value) => value < part).length / values.length - part)).toBeLessThan(0.05);
    expect(draw(7, 1, "failure")).not.toBe(draw(7, 1, "loss"));
    expect(draw(8, 1, "failure")).not.toBe(draw(7, 1, "failure"));
    const waits = Array.from({ length: 2000 }, (_, n) => drawDuration(1000, 7, n, "wait"));
    expect(Math.abs(waits.reduce((a, b) => a + b, 0) / waits.length - 1000)).toBeLessThan(100);
  });
});

describe("what happens to one job", () => {
  const one = (sim: Partial<Simulation>, walltimeMs?: number): { sim: Simulation; state: model.SimulatedState } => {
    const whole = { ...QUIET, ...sim };
    const ask = { nodes: 1, isHeld: false, beginMs: 0, ...(walltimeMs === undefined ? {} : { walltimeMs }) };
    const { state } = model.submit(whole, model.EMPTY, { name: "n", directory: "/", command: [] }, ask, 0);
    return { sim: whole, state: model.advance(whole, state, 0).state };
  };

  it.each([
    [{ failureRate: 1 }, undefined, "start-failed"],
    [{ preemptionRate: 1, troubleAfterMs: 0 }, undefined, "preempted"],
    [{ nodeLossRate: 1, troubleAfterMs: 0 }, undefined, "lost"],
    [{}, 1000, "timeout"],
  ])("%j with a walltime of %s ms: %s", (change, walltimeMs, outcome) => {
    const { sim, state } = one(change, walltimeMs);
    const { state: later } = model.advance(sim, state, 2000);
    expect(model.processesGone(later, 1, 143).jobs[0]).toMatchObject({ state: "ended", outcome });
  });

  it("a lost node takes nothing new until it is back", () => {
    const { sim, state } = one({ nodes: 1, nodeLossRate: 1, troubleAfterMs: 0, repairMs: 5000 });
    const lost = model.processesGone(model.advance(sim, state, 10).state, 1, undefined);
    const quiet = { ...sim, nodeLossRate: 0 };
    const ask = { nodes: 1, isHeld: false, beginMs: 0 };
    const { state: second } = model.submit(quiet, lost, { name: "m", directory: "/", command: [] }, ask, 20);
    expect(model.advance(quiet, second, 4000).effects).toEqual([]);
    expect(model.advance(quiet, second, 5010).effects).toEqual([{ do: "start", job: 2 }]);
  });

  it("one that does not listen is ended hard", () => {
    const { sim, state } = one({ graceMs: 1000 });
    const asked = model.cancel(sim, state, [1], 100);
    expect(asked.effects).toEqual([{ do: "end", job: 1, isHard: false }]);
    expect(model.cancel(sim, asked.state, [1], 200).effects).toEqual([]);
    expect(model.advance(sim, asked.state, 1000).effects).toEqual([]);
    expect(model.advance(sim, asked.state, 1100).effects).toEqual([{ do: "end", job: 1, isHard: true }]);
  });

  it("what can never run is refused", () => {
    for (const [change, words] of [
      [{ nodes: 3 }, /3 nodes/],
      [{ cores: 2 }, /2 cores/],
      [{ partition: "gpu" }, /invalid partition: gpu/],
    ] as const) {
      const ask = { nodes: 1, isHeld: false, beginMs: 0, ...change };
      expect(model.refusal(QUIET, ask)).toMatch(words);
    }
  });
});

describe("options of a simulated job", () => {
  it("say what a pilot asks", () => {
    const ask = {
      name: "n",
      stdout: "",
      stderr: "",
      nodes: 2,
      cores: 3,
      walltime: 60,
      partition: "p",
      options: [],
      skipOptions: [],
    };
    expect(readOptions(simulatedOptions(ask))).toEqual({
      nodes: 2,
      cores: 3,
      walltimeMs: 60_000,
      partition: "p",
      isHeld: false,
      beginMs: 0,
    });
    expect(simulatedOptions({ ...ask, options: ["--hold"], skipOptions: ["--cores", "--partition"] })).toEqual([
      "--nodes=2",
      "--walltime=60",
      "--hold",
    ]);
  });

  it.each(["--nodes=0", "--nodes=x", "--cores=1.5", "--walltime=", "--what=1", "nodes=1", "--hold=1"])(
    "refuse %s with words",
    (word) => expect(readOptions([word])).toEqual(expect.stringContaining(word.includes("=") ? "" : word)),
  );

  it("are never a crash", () => {
    fc.assert(fc.property(fc.array(fc.string()), (words) => void readOptions(words)));
  });
});

describe("arrays of the simulation", () => {
  const job = { name: "a", directory: "/d", command: ["true"] };
  const ask = { nodes: 1, cores: 1, isHeld: false, beginMs: 0 };

  it("are jobs with numbers and places of their own", () => {
    const made = model.submitArray(QUIET, model.EMPTY, job, ask, 3, 0);
    expect(made).toMatchObject({ ids: [1, 2, 3] });
    expect(made.state.jobs.map(({ array }) => array)).toEqual([0, 1, 2].map((element) => ({ first: 1, element })));
    const { state } = model.cancel(QUIET, made.state, [2], 0);
    expect(state.jobs.map((one) => one.state)).toEqual(["queued", "ended", "queued"]);
  });

  it("are taken as a whole or not at all, and numbers are used up", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000 }), fc.integer({ min: 1, max: 20 }), (seed, count) => {
        const made = model.submitArray({ ...QUIET, seed, refusalRate: 0.1 }, model.EMPTY, job, ask, count, 0);
        expect(made.state.jobs).toHaveLength("no" in made ? 0 : count);
        expect(made.state.next).toBeGreaterThan(1);
      }),
    );
  });
});
