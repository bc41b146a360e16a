// How long graphs take with our order, beside other orders: the shipped core and scheduler are stepped through them with a
// simulated clock, with our order and others in its place. Fixed seeds: makespans are the same on every machine.
//
// All orders know the same: the graph and what is expected of each task. The best of them for one graph is known only when
// all are over (hindsight): where times are known but for a template's mean, one of 60 random orders may by luck begin the
// longest tasks first. So each graph is also judged beside the order that did best on the other graphs of its family.
import { EXPECTED, FAMILIES } from "../makespan/graphs.mjs";
import { isRandom } from "../makespan/orders.mjs";
import { measureGraphs } from "../makespan/threads.mjs";

const named = (value) => value.toLocaleString("en");

/** Tasks, cores, seeds and random orders. Large graphs take long: they are an experiment of their own, beside fewer. */
const SMALL = [
  [1000, 16, [1, 2, 3, 4], 60],
  [1000, 64, [5, 6, 7, 8], 60],
];
const SIZES = {
  makespan: {
    full: SMALL,
    quick: SMALL.map(([size, cores, seeds, randoms]) => [size, cores, seeds.slice(0, 2), randoms]),
    smoke: [[60, 16, [1], 2]],
  },
  "makespan-large": {
    full: [
      [10_000, 128, [9], 60],
      [100_000, 512, [10], 4],
    ],
    quick: [[10_000, 128, [9], 4]],
    smoke: [[120, 16, [1], 2]],
  },
};

const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;

/** With what the order took that did best, beside first come, on the other graphs of the family. */
const withTold = (graphs) =>
  graphs.map((graph) => {
    const others = graphs.filter((other) => other !== graph && other.family === graph.family);
    if (others.length === 0) return graph;
    const scoreOf = (name) => {
      const had = others.filter(({ spans }) => name in spans);
      return had.length === 0 ? Infinity : mean(had.map(({ spans, first }) => spans[name] / first));
    };
    const [told] = Object.keys(graph.spans)
      .map((name) => [name, scoreOf(name)])
      .toSorted(([, a], [, b]) => a - b)[0];
    return { ...graph, told: graph.spans[told] };
  });

const LABELS = {
  again: "tasks that ran before: what each took then is known to a tenth",
  new: "tasks with new items: the mean of their template is known",
};

/** What each order took: those with a name, the best that could be told, a usual random one, and first come. */
const contendersOf = ([{ spans, told }]) => [
  ...Object.keys(spans)
    .filter((name) => !isRandom(name))
    .map((name) => [name, (graph) => graph.spans[name]]),
  ...(told === undefined ? [] : [["the best of them as told by the family's other graphs", (graph) => graph.told]]),
  ["a random one, the median", ({ random }) => random],
  ["first come, first served", ({ first }) => first],
];

const TITLES = {
  makespan: "makespan, simulated, 1,000 tasks on 16 and 64 cores",
  "makespan-large": "makespan, simulated, 10,000 tasks on 128 cores and 100,000 on 512",
};

const experiment = ({ kind, known }, name, title, more) => ({
  name: `${kind}-${name}-${known}`,
  title: `${TITLES[kind]}: ${title}; ${LABELS[known]}`,
  better: "less",
  others: [],
  skipped: {},
  wanted: [],
  simulated: true,
  ...more,
});

/** One table for a family: our makespan as a multiple of each of the others. */
const tableOf = (about, family, graphs) => {
  const part = ([label, pick]) => ({
    key: label,
    role: "part",
    label,
    values: graphs.map((graph) => graph.ours / pick(graph)),
  });
  const ofBound = ["the lower bound: the longest path, or work over cores", ({ bound }) => bound];
  return experiment(about, family, `${family}, ${graphs.length} graphs: ours ÷ the best of all in hindsight`, {
    unit: "ours ÷ it",
    ours: graphs.map((graph) => graph.ours / graph.best),
    others: [...contendersOf(graphs), ofBound].map(part),
  });
};

/** What no graph may miss, not the median alone. */
const worstOf = (about, graphs) => {
  const families = Object.keys(FAMILIES).map((family) => graphs.filter((graph) => graph.family === family));
  const most = (list, ratio) => Math.max(...list.map(ratio));
  const meanMost = (ratio) => most(families, (each) => mean(each.map(ratio)));
  const worst = (name, title, value, atMost, others = []) =>
    experiment(about, name, title, { unit: "ours ÷ it", ours: [value], others, wanted: [{ atMost }] });
  /** How far the others are from it, each on its own worst graph. */
  const beside = contendersOf(graphs).map(([label, pick]) => ({
    key: label,
    role: "part",
    label: `${label}, its worst graph ÷ the best`,
    values: [most(graphs, (graph) => pick(graph) / graph.best)],
  }));
  return [
    worst(
      "best",
      "beside the best of all other orders in hindsight, the worst graph",
      most(graphs, (graph) => graph.ours / graph.best),
      1.05,
      beside,
    ),
    ...(graphs.some(({ told }) => told === undefined)
      ? []
      : [
          worst(
            "told",
            "beside the best of them as told by the family's other graphs, the mean of the worst family",
            meanMost((graph) => graph.ours / graph.told),
            1.05,
          ),
        ]),
    worst(
      "first-come",
      "beside first come, first served, the mean of the worst family",
      meanMost((graph) => graph.ours / graph.first),
      1,
    ),
    worst(
      "single",
      "beside first come, first served, the worst graph",
      most(graphs, (graph) => graph.ours / graph.first),
      1.03,
    ),
  ];
};

/** What one line of progress says. */
const saidOf = ({ known, family, size, cores }, { ours, best, first, bound }) =>
  `${known}: ${family}, ${named(size)} tasks on ${cores} cores: ${(ours / best).toFixed(3)} × the best, ` +
  `${(ours / first).toFixed(3)} × first come, ${(ours / bound).toFixed(3)} × the bound`;

const measure = async (kind, options, say) => {
  const tables = [];
  for (const known of Object.keys(EXPECTED)) {
    const wanted = Object.keys(FAMILIES).flatMap((family) =>
      SIZES[kind][options.size].flatMap(([size, cores, seeds, randoms]) =>
        seeds.map((seed) => ({ family, known, size, cores, randoms, seed })),
      ),
    );
    const graphs = withTold(await measureGraphs(wanted, (each, graph) => say(saidOf(each, graph))));
    const ofFamily = (name) => graphs.filter(({ family }) => family === name);
    if (kind === "makespan")
      tables.push(...Object.keys(FAMILIES).map((family) => tableOf({ kind, known }, family, ofFamily(family))));
    tables.push(...worstOf({ kind, known }, graphs));
  }
  return tables;
};

export const measureMakespan = (options, say) => measure("makespan", options, say);

/** The same with large graphs. */
export const measureLargeMakespan = (options, say) => measure("makespan-large", options, say);
