// Claim: dependencies cost little, whatever the graph. Null tasks in a chain, fanned out and in again, and in layers with
// random edges, submitted through the SDK.
import { alternate } from "../rounds.mjs";
import { checkRun, checkSample } from "../sample.mjs";
import { connectTo, runThrough } from "../sdk.mjs";
import { cpuNow, cpuPerTask, openSlipway } from "../slipway.mjs";
import { summary } from "../statistics.mjs";

const nothing = { run: ["/bin/true"], executor: null };
const named = (value) => value.toLocaleString("en");

const GRAPHS = {
  chain: (tasks) =>
    Array.from({ length: tasks }, (_, i) => ({
      name: `t${i}`,
      ...nothing,
      ...(i === 0 ? {} : { after: `t${i - 1}` }),
    })),
  fan: (tasks) => [
    { name: "out", ...nothing },
    { name: "many", ...nothing, each: { array: `1-${tasks - 2}` }, after: "out" },
    { name: "in", ...nothing, after: "many" },
  ],
  /** As many layers as a layer has tasks; each but the first waits for two drawn from the layer before. */
  layered: (tasks) => {
    const width = Math.round(Math.sqrt(tasks));
    return Array.from({ length: tasks }, (_, i) => {
      const layer = Math.floor(i / width);
      const drawn = () => `t${(layer - 1) * width + Math.floor(Math.random() * width)}`;
      return { name: `t${i}`, ...nothing, ...(layer === 0 ? {} : { after: [...new Set([drawn(), drawn()])] }) };
    });
  },
};

const LABELS = {
  chain: "a chain: each waits for the one before, and is handed ahead",
  fan: "one, then all but two at once, then one",
  layered: "layers with two random edges a task",
};

/** Microseconds a task. */
const WANTED = { chain: [{ atMost: 250 }], fan: [], layered: [{ atMost: 15 }] };

export const measureGraphs = async (options, say) => {
  const tasks = options.sized(100_000, 5000, 50);
  const slipway = await openSlipway(options);
  const client = await connectTo(slipway);
  try {
    const document = (kind, count) => ({ name: kind, cwd: "/", environment: {}, tasks: GRAPHS[kind](count) });
    await runThrough(client, document("layered", 2500));
    const contenders = Object.keys(GRAPHS).map((kind) => ({
      key: kind,
      label: kind,
      text: ({ cost, accepted, cpu }) =>
        `${cost.toFixed(1)} µs a task, submitted in ${(accepted / 1000).toFixed(2)} s; the server's CPU ${cpu.server.toFixed(1)}`,
      measure: async () => {
        const processes = await slipway.processes();
        const before = cpuNow(processes);
        const { ms, accepted, run } = await runThrough(client, document(kind, tasks));
        const cpu = cpuPerTask(before, cpuNow(processes), tasks);
        checkRun(run, tasks);
        await checkSample(slipway, run, { executed: false });
        return { cost: ((ms - accepted) * 1000) / tasks, accepted, cpu };
      },
    }));
    const { values } = await alternate(contenders, options.rounds, say);
    return Object.keys(GRAPHS).map((kind) => {
      const pick = (what) => values.get(kind).map((value) => value[what]);
      return {
        name: `graph-${kind}`,
        title: `${named(tasks)} null tasks: ${LABELS[kind]}`,
        unit: "µs/task",
        better: "less",
        ours: pick("cost"),
        others: [
          {
            key: "submit",
            role: "part",
            label: "s until it was accepted: on disk",
            values: pick("accepted").map((ms) => ms / 1000),
          },
        ],
        skipped: {},
        wanted: WANTED[kind],
        cpu: Object.fromEntries(["server", "agent"].map((key) => [key, summary(pick("cpu").map((cpu) => cpu[key]))])),
      };
    });
  } finally {
    client.close();
    await slipway.close();
  }
};
