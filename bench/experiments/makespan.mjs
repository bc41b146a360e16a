// Claim: the order in which tasks are placed ends runs soon. The shipped core and scheduler, stepped by a
// simulated clock, with our order and others in its place. Fixed seeds: makespans are the same on every machine.
import { EXPECTED, FAMILIES, lowerBound } from "../makespan/graphs.mjs";
import { ordersOf } from "../makespan/orders.mjs";
import { loadCore, simulate, specOf } from "../makespan/simulate.mjs";

const named = (value) => value.toLocaleString("en");

/** Tasks, cores, seeds and random orders; large graphs take long, so they are beside fewer. */
const SMALL = [
  [1000, 16, [1, 2], 60],
  [1000, 64, [3, 4], 60],
];
const LARGE = [
  [10_000, 128, [5], 60],
  [100_000, 512, [6], 4],
];
const SIZES = {
  full: { again: [...SMALL, ...LARGE], new: SMALL },
  quick: { again: SMALL.map(([size, cores, [seed], randoms]) => [size, cores, [seed], randoms]), new: [] },
  smoke: { again: [[60, 16, [1], 2]], new: [[60, 16, [1], 2]] },
};

const ours = (core) => core.createPressureOrder((_run, { expectedMs }) => expectedMs);

const rankedBy = (core, ranks) => ({
  ...core.FIRST_COME,
  rankOf: (_run, { index }) => ({ start: 0, pressure: ranks[index] }),
});

/** Our makespan of one graph, and those of others, in seconds. */
const measureGraph = (core, family, known, [size, cores, , randoms], seed) => {
  const tasks = FAMILIES[family](size, seed);
  const expected = EXPECTED[known](tasks, seed);
  const spec = specOf(core, tasks);
  const spanOf = (order) => simulate(core, { tasks, spec, cores, order, expected });
  const orders = Object.entries(ordersOf(tasks, expected, randoms));
  const spans = Object.fromEntries(orders.map(([name, ranks]) => [name, spanOf(rankedBy(core, ranks))]));
  return {
    family,
    ours: spanOf(ours(core)),
    first: spanOf(core.FIRST_COME),
    bound: lowerBound(tasks, cores),
    best: Math.min(...Object.values(spans)),
    spans: Object.fromEntries(Object.entries(spans).filter(([name]) => !name.startsWith("random"))),
  };
};

const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;

const LABELS = {
  again: "tasks that ran before: what each took then is known to a tenth",
  new: "tasks with new items: the mean of their template is known",
};

/** One table for a family: our makespan as a multiple of each of the others. */
const tableOf = (known, family, graphs) => {
  const ratios = (pick) => graphs.map((graph) => graph.ours / pick(graph));
  const part = (label, pick) => ({ key: label, role: "part", label, values: ratios(pick) });
  return {
    name: `makespan-${family}-${known}`,
    title: `makespan, simulated: ${family}, ${LABELS[known]}: ours ÷ the best of the other orders`,
    unit: "ours ÷ it",
    better: "less",
    ours: ratios(({ best }) => best),
    others: [
      ...Object.keys(graphs[0].spans).map((name) => part(name, ({ spans }) => spans[name])),
      part("first come, first served", ({ first }) => first),
      part("the lower bound: the longest path, or work over cores", ({ bound }) => bound),
    ],
    skipped: {},
    wanted: [],
  };
};

/** What no graph may miss, not the median alone. */
const worstOf = (known, graphs) => {
  const families = Object.keys(FAMILIES).map((family) => graphs.filter((graph) => graph.family === family));
  const worst = (name, title, value, atMost) => ({
    name: `makespan-${name}-${known}`,
    title: `makespan, simulated: ${title}; ${LABELS[known]}`,
    unit: "ours ÷ it",
    better: "less",
    ours: [value],
    others: [],
    skipped: {},
    wanted: [{ atMost }],
  });
  return [
    worst(
      "best",
      "beside the best of the other orders, the worst graph",
      Math.max(...graphs.map((g) => g.ours / g.best)),
      1.05,
    ),
    worst(
      "first-come",
      "beside first come, first served, the mean of the worst family",
      Math.max(...families.map((each) => mean(each.map((g) => g.ours / g.first)))),
      1,
    ),
    worst(
      "single",
      "beside first come, first served, the worst graph",
      Math.max(...graphs.map((g) => g.ours / g.first)),
      1.03,
    ),
  ];
};

export const measureMakespan = async (options, say) => {
  const core = await loadCore();
  const kinds = Object.keys(EXPECTED).filter((known) => SIZES[options.size][known].length > 0);
  return kinds.flatMap((known) => {
    const graphs = Object.keys(FAMILIES).flatMap((family) =>
      SIZES[options.size][known].flatMap((size) =>
        size[2].map((seed) => {
          const graph = measureGraph(core, family, known, size, seed);
          say(
            `${known}: ${family}, ${named(size[0])} tasks on ${size[1]} cores: ${(graph.ours / graph.best).toFixed(3)} × the best, ` +
              `${(graph.ours / graph.first).toFixed(3)} × first come, ${(graph.ours / graph.bound).toFixed(3)} × the bound`,
          );
          return graph;
        }),
      ),
    );
    const families = Object.keys(FAMILIES);
    return [
      ...families.map((family) =>
        tableOf(
          known,
          family,
          graphs.filter((graph) => graph.family === family),
        ),
      ),
      ...worstOf(known, graphs),
    ];
  });
};
