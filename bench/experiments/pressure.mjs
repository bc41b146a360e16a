// Claim: what tasks are expected to take along their longest path is kept up to date at little cost, also in large graphs.
import { FAMILIES } from "../makespan/graphs.mjs";
import { loadCore, runOf, specOf } from "../makespan/simulate.mjs";
import { alternate } from "../rounds.mjs";

const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;

/**
 * What is told when, by the row that ends: the mean of the last hundred tasks of its template, if it has changed by more
 * than a fifth, to all tasks of that template.
 */
const lessonsOf = (tasks) => {
  const templates = new Map();
  for (const [i, { template }] of tasks.entries()) {
    if (!templates.has(template)) templates.set(template, { members: [], last: [], told: 0 });
    templates.get(template).members.push(i);
  }
  const lessons = new Map();
  for (const [row, { template, seconds }] of tasks.entries()) {
    const of = templates.get(template);
    of.last.push(seconds * 1000);
    if (of.last.length > 100) of.last.shift();
    const now = mean(of.last);
    if (Math.abs(now - of.told) <= of.told / 5) continue;
    of.told = now;
    lessons.set(row, { ms: now, members: of.members });
  }
  return lessons;
};

/** Nothing is known at first and all is learned on the way: microseconds a task. */
const costOf = (core, size, seed) => {
  const tasks = FAMILIES.layered(size, seed);
  const run = runOf(core, specOf(core, tasks));
  for (const group of run.groups) group.expectedMs = 60_000;
  const order = core.createPressureOrder((_run, { expectedMs }) => expectedMs);
  const lessons = lessonsOf(tasks);
  const begun = performance.now();
  let learning = 0;
  // as tasks become ready and end, one after the other
  for (const [row, group] of run.groups.entries()) {
    order.rankOf(run, group);
    group.done = 1;
    const lesson = lessons.get(row);
    if (lesson !== undefined) {
      const from = performance.now();
      for (const index of lesson.members) run.groups[index].expectedMs = lesson.ms;
      learning += performance.now() - from;
      for (const index of lesson.members) order.changed(run, run.groups[index]);
    }
    order.renew(1);
  }
  return ((performance.now() - begun - learning) * 1000) / tasks.length;
};

export const measurePressure = async (options, say) => {
  const core = await loadCore();
  const size = options.sized(100_000, 10_000, 100);
  // compiled before timing, as in a server that has been up for a while
  costOf(core, size, 1);
  const contender = {
    key: "pressure",
    label: "pressure",
    text: (cost) => `${cost.toFixed(2)} µs a task`,
    measure: async (round) => costOf(core, size, 100 + round),
  };
  const { values } = await alternate([contender], options.rounds, say);
  return [
    {
      name: "pressure",
      title: `keeping the pressures of a graph of ${size.toLocaleString("en")} tasks up to date, until all have ended`,
      unit: "µs a task",
      better: "less",
      ours: values.get("pressure"),
      others: [],
      skipped: {},
      wanted: [{ atMost: 2 }],
    },
  ];
};
