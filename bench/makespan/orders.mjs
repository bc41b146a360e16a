// Orders beside ours: each gives every task a rank, and the highest that is ready goes first. All know what ours knows: the
// graph, and the mean time of each template.
import { randomOf } from "./random.mjs";

const dependentsOf = (tasks) => {
  const dependents = tasks.map(() => []);
  for (const [i, { after }] of tasks.entries()) for (const before of after) dependents[before].push(i);
  return dependents;
};

/** The longest path to the end, with each task's own weight. Tasks come after those they wait for. */
const toTheEnd = (tasks, weightOf) => {
  const dependents = dependentsOf(tasks);
  const ranks = new Float64Array(tasks.length);
  for (let i = tasks.length - 1; i >= 0; i--) {
    for (const next of dependents[i]) ranks[i] = Math.max(ranks[i], ranks[next]);
    ranks[i] += weightOf(i);
  }
  return ranks;
};

/**
 * Small goals with big steps, as the first lines of dask/order.py put it: down one branch to its end before the next one
 * is begun, those with few tasks behind them first. A plain form of it: Dask's own has many special cases.
 */
const depthFirst = (tasks) => {
  const dependents = dependentsOf(tasks);
  const behind = toTheEnd(tasks, () => 1);
  const open = tasks.map(({ after }) => after.length);
  const smallLast = (list) => list.toSorted((a, b) => behind[b] - behind[a] || b - a);
  const stack = smallLast([...tasks.keys()].filter((i) => open[i] === 0));
  const ranks = new Float64Array(tasks.length);
  for (let next = tasks.length; stack.length > 0; next--) {
    const i = stack.pop();
    ranks[i] = next;
    stack.push(...smallLast(dependents[i].filter((each) => --open[each] === 0)));
  }
  return ranks;
};

/** Ranks by name. `expected` are seconds. */
export const ordersOf = (tasks, expected, randoms) => ({
  "upward rank": toTheEnd(tasks, (i) => expected[i]),
  "longest first": Float64Array.from(expected),
  "Dask's (depth first)": depthFirst(tasks),
  "HyperQueue's (longest path in tasks)": toTheEnd(tasks, () => 1),
  ...Object.fromEntries(
    Array.from({ length: randoms }, (_, nth) => {
      const random = randomOf(1000 + nth);
      return [`random ${nth + 1}`, Float64Array.from(tasks, random)];
    }),
  ),
});
