// Orders beside ours: each gives every task a rank, and the highest that is ready goes first; of equal ranks the one that
// was ready first. All know what ours knows and no more: the graph, and what is expected of each task. None knows what
// tasks will really take.
//
// HyperQueue's, read in its source: 0.26 takes what is ready by priority of the user, then by the lowest number of the
// task; its solver (MILP) chooses among different requests and workers, and here all ask for one core. Up to 0.22 the
// longest path in tasks went first; 0.23 and 0.24 took the deepest first, 0.25 the oldest job. Workers of both hold some
// tasks in advance, as our agents do. Dask's is in dask-order.mjs.
import { daskOrder } from "./dask-order.mjs";
import { randomOf } from "./random.mjs";

const dependentsOf = (tasks) => {
  const dependents = tasks.map(() => []);
  for (const [i, { after }] of tasks.entries()) for (const before of after) dependents[before].push(i);
  return dependents;
};

/** The longest path to the end, with each task's own weight. Tasks come after those they wait for. */
const toTheEnd = (dependents, weightOf) => {
  const ranks = new Float64Array(dependents.length);
  for (let i = dependents.length - 1; i >= 0; i--) {
    for (const next of dependents[i]) ranks[i] = Math.max(ranks[i], ranks[next]);
    ranks[i] += weightOf(i);
  }
  return ranks;
};

export const isRandom = (name) => name.startsWith("random");

/** Ranks by name. `expected` are seconds. */
export const ordersOf = (tasks, expected, randoms) => {
  const dependents = dependentsOf(tasks);
  return {
    "upward rank": toTheEnd(dependents, (i) => expected[i]),
    "longest first": Float64Array.from(expected),
    "Dask's (2026.7, simplified)": daskOrder(tasks, dependents).map((place) => -place),
    "HyperQueue's since 0.26 (by number)": Float64Array.from(tasks, (_, i) => -i),
    "HyperQueue's up to 0.22 (longest path in tasks)": toTheEnd(dependents, () => 1),
    ...Object.fromEntries(
      Array.from({ length: randoms }, (_, nth) => {
        const random = randomOf(1000 + nth);
        return [`random ${nth + 1}`, Float64Array.from(tasks, random)];
      }),
    ),
  };
};
