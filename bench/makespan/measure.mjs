// One graph with our order and with others, in the shipped core and scheduler. Started as a thread it measures the graphs
// it is sent: they have nothing to do with each other.
import { isMainThread, parentPort } from "node:worker_threads";
import { summary } from "../statistics.mjs";
import { EXPECTED, FAMILIES, lowerBound } from "./graphs.mjs";
import { isRandom, ordersOf } from "./orders.mjs";
import { loadCore, simulate, specOf } from "./simulate.mjs";

const ours = (core) => core.createPressureOrder((_run, { expectedMs }) => expectedMs);

const rankedBy = (core, ranks) => ({
  ...core.FIRST_COME,
  rankOf: (_run, { index }) => ({ start: 0, pressure: ranks[index] }),
});

/** Our makespan of one graph, and those of others by name, in seconds. */
const measureGraph = (core, { family, known, size, cores, randoms, seed }) => {
  const tasks = FAMILIES[family](size, seed);
  const expected = EXPECTED[known](tasks, seed);
  const spec = specOf(core, tasks);
  const spanOf = (order) => simulate(core, { tasks, spec, cores, order, expected });
  const orders = Object.entries(ordersOf(tasks, expected, randoms));
  const spans = Object.fromEntries(orders.map(([name, ranks]) => [name, spanOf(rankedBy(core, ranks))]));
  const byLuck = Object.keys(spans).filter(isRandom);
  return {
    family,
    ours: spanOf(ours(core)),
    first: spanOf(core.FIRST_COME),
    bound: lowerBound(tasks, cores),
    best: Math.min(...Object.values(spans)),
    random: summary(byLuck.map((name) => spans[name])).median,
    spans,
  };
};

if (!isMainThread) {
  const core = await loadCore();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  parentPort.on("message", (wanted) => parentPort.postMessage(measureGraph(core, wanted)));
}
