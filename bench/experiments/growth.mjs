// Claim: the cost of a task grows neither with the number of connected agents nor with that of waiting shapes. Agents:
// light ones in few processes, each with its connection and TLS, that answer a task at once (agents/light-agents.mjs), in a
// server that has done several times as many tasks before: until the compiler has seen the code, a server's second run costs
// half as much again, and is shown separately. Those were of the same template, so that it knows how long they take, or of
// others: then each agent gets a few tasks first, and its share when they have ended. Shapes: groups of null tasks that
// differ in memory, through the real agent.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_FLEET, startLightAgents } from "../light-agents.mjs";
import { nullArray, runNull } from "../null-run.mjs";
import { alternate } from "../rounds.mjs";
import { checkSample } from "../sample.mjs";
import { openSlipway } from "../slipway.mjs";
import { summary } from "../statistics.mjs";

const named = (value) => value.toLocaleString("en");
const text = ({ rate, cpu }) => `${(1e6 / rate).toFixed(2)} µs a task, the server's CPU ${cpu.server.toFixed(2)} of it`;

/** What each process used per task, at this size and at the one that it is compared with. */
const cpuLine = (values, what, ...sizes) => {
  const line = {};
  for (const size of sizes) {
    const all = values.get(size).map(({ cpu }) => cpu);
    line[`server with ${named(size)} ${what}`] = summary(all.map(({ server }) => server));
    if (all[0].light !== undefined) line[`the ${named(size)} light agents`] = summary(all.map(({ light }) => light));
  }
  return line;
};

/** Runs between the second and the one that counts. */
const WARM = 3;

const keyOf = (agents, isLearned) => (isLearned ? agents : `unlearned-${agents}`);

/** Each number of agents gets its own server, which starts with nothing but them. */
const withAgents = (options, agents, tasks, isLearned) => ({
  key: keyOf(agents, isLearned),
  label: `${named(agents)} agents${isLearned ? "" : ", nothing learned"}`,
  text,
  measure: async () => {
    const slipway = await openSlipway({ ...options, clusters: NO_FLEET });
    try {
      const light = await startLightAgents(slipway, agents);
      let runs = 0;
      const one = () =>
        runNull(slipway, tasks, nullArray(tasks, isLearned ? undefined : `/bin/template-${(runs += 1)}`));
      await one();
      const second = (await one()).cpu.server;
      for (let i = 0; i < WARM; i++) await one();
      const before = light.cpu();
      const found = { ...(await one()), second };
      // they use cores of this machine that agents on their own nodes would not
      found.cpu.light = ((light.cpu() - before) * 1000) / tasks;
      await checkSample(slipway, found.run, { executed: false });
      return found;
    } finally {
      await slipway.close();
    }
  },
});

const shapesFile = (shapes, tasks) =>
  [
    "tasks:",
    ...Array.from(
      { length: shapes },
      (_, i) =>
        `  - { name: s${i}, executor: null, mem: ${i + 1}M, each: { array: 1-${tasks / shapes} }, run: [/bin/true] }`,
    ),
    "",
  ].join("\n");

const withShapes = (slipway, directory, shapes, tasks) => ({
  key: shapes,
  label: `${named(shapes)} shapes`,
  text,
  measure: async () => {
    const file = join(directory, `${shapes}.yaml`);
    await writeFile(file, shapesFile(shapes, tasks));
    const found = await runNull(slipway, tasks, [file]);
    await checkSample(slipway, found.run, { executed: false });
    return found;
  },
});

/** The largest beside the smaller ones; it is compared with `base`. */
const experiment = (name, title, what, sizes, base, values, wanted) => {
  const costs = (size) => values.get(size).map(({ rate }) => 1e6 / rate);
  const largest = sizes.at(-1);
  return {
    name,
    title,
    unit: "µs/task",
    better: "less",
    limit: String(base),
    ours: costs(largest),
    others: sizes.slice(0, -1).map((size) => ({
      key: String(size),
      role: size === base ? "limit" : "also",
      label: `with ${named(size)} ${what}`,
      values: costs(size),
    })),
    curve: sizes.map((size) => [size, summary(costs(size)).median]),
    cpu: cpuLine(values, what, largest, base),
    skipped: {},
    wanted,
  };
};

/** The server's CPU time alone: on one machine the agents' own would count too. */
const serverCpu = (tasks, values, isLearned, [base, largest], atMost) => {
  const costs = (size) => values.get(keyOf(size, isLearned)).map(({ cpu }) => cpu.server);
  const known = isLearned ? "whose duration was learned" : "about which nothing is known";
  return {
    name: `growth-agents-${isLearned ? "learned" : "unlearned"}`,
    title: `the server's CPU time for a null task ${known}, ${named(largest)} connected agents, ${named(tasks)} tasks`,
    unit: "CPU µs/task",
    better: "less",
    limit: String(base),
    ours: costs(largest),
    others: [
      { key: String(base), role: "limit", label: `with ${named(base)} agents`, values: costs(base) },
      ...[largest, base].map((size) => ({
        key: `${size}-second`,
        role: "part",
        label: `the second run of a new server, ${named(size)} agents`,
        values: values.get(keyOf(size, isLearned)).map(({ second }) => second),
      })),
    ],
    skipped: {},
    wanted: [{ of: String(base), atMost }],
  };
};

const measureAgents = async (options, say) => {
  const counts = options.sized([1, 10, 100, 1000], [1, 10, 100], [1, 3]);
  const tasks = options.sized(1_000_000, 100_000, 600);
  const base = counts[1] === 3 ? 1 : 10;
  const compared = [base, counts.at(-1)];
  const { values } = await alternate(
    [
      ...counts.map((agents) => withAgents(options, agents, tasks, true)),
      ...compared.map((agents) => withAgents(options, agents, tasks, false)),
    ],
    options.rounds,
    say,
  );
  const title = `cost of a null task with ${named(counts.at(-1))} connected agents, ${named(tasks)} tasks`;
  return [
    experiment("growth-agents", title, "agents", counts, base, values, []),
    serverCpu(tasks, values, true, compared, 1.2),
    serverCpu(tasks, values, false, compared, 1.4),
  ];
};

const measureShapes = async (options, say) => {
  const counts = options.sized([1, 10, 100, 1000], [1, 10, 100], [1, 10]);
  const tasks = options.sized(100_000, 10_000, 100);
  const slipway = await openSlipway(options);
  const directory = await mkdtemp(join(tmpdir(), "slipway-shapes-"));
  try {
    await runNull(slipway, tasks, nullArray(tasks));
    const { values } = await alternate(
      counts.map((shapes) => withShapes(slipway, directory, shapes, tasks)),
      options.rounds,
      say,
    );
    const title = `cost of a null task among ${named(counts.at(-1))} shapes, ${named(tasks)} tasks`;
    return experiment("growth-shapes", title, "shapes", counts, 10, values, []);
  } finally {
    await rm(directory, { recursive: true, force: true });
    await slipway.close();
  }
};

export const measureGrowth = async (options, say) => [
  ...(await measureAgents(options, say)),
  await measureShapes(options, say),
];
