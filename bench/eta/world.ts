import { createRandom, type Random } from "../../src/eta/random.ts";
import { FRACTION } from "../../src/core/resources.ts";
import { type Run, createRun, groupOf } from "../../src/core/run.ts";
import type { Dependency, GroupSpec, RunSpec } from "../../src/core/spec.ts";
import { Task } from "../../src/core/states.ts";
import { touch } from "../../src/core/table.ts";
import type { Expected } from "../../src/learned/expected.ts";

/**
 * Runs as people have them, drawn from a seed: their graph, how long their tasks take and how much that differs, how
 * many cores there are, and what ran before. No two templates are alike, tasks of one may be alike or not, an item may
 * take as long as the last time or not, and on another day all of a template may take longer.
 */
export const FAMILIES = ["array", "stages", "fork-join", "layers", "pipelines", "mixed"] as const;
export type Family = (typeof FAMILIES)[number];

export interface World {
  readonly family: Family;
  readonly spec: RunSpec;
  readonly agents: readonly { readonly cores: number }[];
  /** How many earlier runs of the same there were. */
  readonly earlier: number;
  /** What a task of a run takes, in milliseconds: the same whenever it is asked. */
  durationOf(day: number): (run: Run, row: number) => number;
}

const between = (random: Random, low: number, high: number): number => low + (high - low) * random.uniform();
const whole = (random: Random, low: number, high: number): number => Math.floor(between(random, low, high + 1));
/** As often between 1 and 10 as between 10 and 100. */
const scaled = (random: Random, low: number, high: number): number =>
  Math.exp(between(random, Math.log(low), Math.log(high)));

const groupSpec = (random: Random, name: string, count: number, after: readonly Dependency[]): GroupSpec => ({
  name,
  command: ["work", name],
  items: count === 1 ? { kind: "one" } : { kind: "range", from: 0, step: 1, count },
  after,
  resources: { cpus: FRACTION * (random.uniform() < 0.15 ? 2 : 1) },
  priority: 0,
  retries: 0,
  retryDelay: 0,
  executor: "process",
});

const on = (...groups: number[]): Dependency[] => groups.map((group) => ({ group, on: "ok" }));

/** Groups with how many tasks and after which of them. */
type Shape = readonly (readonly [count: number, ...after: number[]])[];

const SHAPES: Readonly<Record<Family, (random: Random) => Shape>> = {
  array: (random) => [[Math.round(scaled(random, 50, 3000))]],
  stages: (random) =>
    Array.from({ length: whole(random, 2, 6) }, (_, i) => [
      Math.round(scaled(random, 20, 800)),
      ...(i === 0 ? [] : [i - 1]),
    ]),
  "fork-join": (random) => {
    const shape: [number, ...number[]][] = [[1]];
    const rounds = whole(random, 1, 4);
    for (let i = 0; i < rounds; i += 1) {
      const from = shape.length - 1;
      const wide = whole(random, 2, 5);
      for (let n = 0; n < wide; n += 1) shape.push([Math.round(scaled(random, 5, 200)), from]);
      shape.push([1, ...Array.from({ length: wide }, (_, n) => from + 1 + n)]);
    }
    return shape;
  },
  layers: (random) => {
    const shape: [number, ...number[]][] = [];
    const layers = whole(random, 4, 12);
    const wide = whole(random, 5, 40);
    for (let layer = 0; layer < layers; layer += 1)
      for (let n = 0; n < wide; n += 1) {
        const above = layer === 0 ? 0 : whole(random, 1, 3);
        const after = new Set(Array.from({ length: above }, () => (layer - 1) * wide + whole(random, 0, wide - 1)));
        shape.push([1, ...after]);
      }
    return shape;
  },
  pipelines: (random) => {
    const shape: [number, ...number[]][] = [];
    const length = whole(random, 3, 8);
    const lines = whole(random, 5, 60);
    for (let line = 0; line < lines; line += 1)
      for (let n = 0; n < length; n += 1) shape.push(n === 0 ? [1] : [1, shape.length - 1]);
    return shape;
  },
  mixed: (random) => {
    const shape: [number, ...number[]][] = [];
    const groups = whole(random, 5, 40);
    for (let i = 0; i < groups; i += 1) {
      const above = i === 0 ? 0 : whole(random, 0, 2);
      const after = new Set(Array.from({ length: above }, () => whole(random, Math.max(0, i - 6), i - 1)));
      shape.push([random.uniform() < 0.5 ? 1 : Math.round(scaled(random, 2, 150)), ...after]);
    }
    return shape;
  },
};

/** Tasks of a template: how long, how different, and how much of the difference is the item's. */
interface Nature {
  readonly median: number;
  readonly spread: number;
  /** A share of heavy ones, each so much longer. */
  readonly heavy: number;
  readonly ofItem: number;
}

/** A hash of three numbers as a seed. */
const seedOf = (...parts: number[]): number =>
  parts.reduce((hash, part) => Math.imul(hash ^ part, 0x9e3779b1) ^ (hash >>> 13), 0x2545f491) >>> 0;

/** Steps of a pipeline, and nodes of a layer, are often of one kind: the same program with another argument. */
const kindOf = (family: Family, index: number, shape: Shape): number => {
  if (family === "pipelines")
    return shape.findIndex(([, ...after], i) => i > 0 && after.length === 0) > 0
      ? index % shape.findIndex(([, ...after], i) => i > 0 && after.length === 0)
      : index;
  return family === "layers" ? index % 7 : index;
};

export const drawWorld = (seed: number): World => {
  const random = createRandom(seed);
  const family = FAMILIES[whole(random, 0, FAMILIES.length - 1)]!;
  const shape = SHAPES[family](random);
  const scale = scaled(random, 2000, 600_000);
  const natures = new Map<number, Nature>();
  for (let kind = 0; kind < shape.length; kind += 1)
    natures.set(kind, {
      median: scale * Math.exp(between(random, 0.2, 0.9) * random.normal()),
      spread: between(random, 0.05, 0.8),
      heavy: random.uniform() < 0.15 ? between(random, 0.01, 0.1) : 0,
      ofItem: random.uniform() < 0.5 ? 0.9 : 0,
    });
  const groups = shape.map(([count, ...after], i) => groupSpec(random, `g${i}`, count, on(...after)));
  const asked = random.uniform() < 0.3;
  const spec: RunSpec = {
    name: family,
    cwd: "/",
    env: {},
    numbering: { start: 0, step: 1 },
    groups: asked
      ? groups.map((group, i) => ({
          ...group,
          timeRequest: Math.ceil((natures.get(kindOf(family, i, shape))!.median * between(random, 1.5, 4)) / 1000),
        }))
      : groups,
  };
  const agents = Array.from({ length: whole(random, 1, 4) }, () => ({ cores: Math.round(scaled(random, 2, 32)) }));
  const earlier = random.uniform() < 0.3 ? 0 : whole(random, 1, 3);

  const durationOf =
    (day: number) =>
    (run: Run, row: number): number => {
      const group = groupOf(run.groups, row);
      const kind = kindOf(family, group.index, shape);
      const nature = natures.get(kind)!;
      const today = createRandom(seedOf(seed, day, kind, 1));
      const item = createRandom(seedOf(seed, group.index, row - group.first, 2));
      const once = createRandom(seedOf(seed, day, row, 3));
      const mixed = nature.ofItem * item.normal() + Math.sqrt(1 - nature.ofItem ** 2) * once.normal();
      const heavy = (nature.ofItem > 0 ? item : once).uniform() < nature.heavy ? 8 : 1;
      return Math.max(1, nature.median * heavy * Math.exp(0.12 * today.normal() + nature.spread * mixed));
    };
  return { family, spec, agents, earlier, durationOf };
};

/** Teaches what the tasks of one earlier run took. */
export const teachEarlier = (world: World, day: number, expected: Expected): void => {
  const run = createRun(1000 + day, `earlier${day}`, world.spec, 0, new Map());
  const durationOf = world.durationOf(day);
  for (let row = 0; row < run.total; row += 1) {
    const page = touch(run.table, row);
    const slot = row % run.table.pageRows;
    page.state[slot] = Task.DONE;
    page.started[slot] = 1000;
    page.finished[slot] = 1000 + durationOf(run, row);
    expected.taskEnded(run, row);
  }
  expected.forget(run);
};
