// Claim: everything but the spawning costs microseconds a task, and the same for the millionth as for the first.
// Tasks of the null executor through server, journal, TLS, agent and back, in runs of growing size.
import { alternate } from "../rounds.mjs";
import { checkRun, checkSample } from "../sample.mjs";
import { cpuNow, cpuPerTask, openSlipway } from "../slipway.mjs";
import { median, summary } from "../statistics.mjs";

const BASE = 10_000;
/** Small runs are over in milliseconds: a round measures several. */
const repeatsOf = (size) => Math.max(1, Math.min(5, Math.floor(BASE / size)));
const named = (size) => size.toLocaleString("en");

const runOnce = async (slipway, size) => {
  const processes = await slipway.processes();
  const before = cpuNow(processes);
  const words = ["--executor", "null", "--array", `1-${size}`, "--", "/bin/true"];
  const { answer: run, seconds } = await slipway.ask("run", ...words);
  const cpu = cpuPerTask(before, cpuNow(processes), size);
  checkRun(run, size);
  // Times are whole milliseconds.
  const inside = Math.max(1, Date.parse(run.finished) - Date.parse(run.submitted)) / 1000;
  return { run, rate: size / inside, wall: size / seconds, cpu };
};

export const measureNull = async (options, say) => {
  const sizes = options.quick ? [1000, BASE, 100_000] : [1000, BASE, 100_000, 1_000_000];
  const slipway = await openSlipway(options);
  try {
    await runOnce(slipway, BASE);
    const contenders = sizes.map((size) => ({
      key: size,
      label: `${named(size)} null tasks`,
      text: ({ rate, wall }) => `${Math.round(rate)} tasks/s, ${Math.round(wall)} as typed`,
      measure: async () => {
        const found = [];
        for (let i = 0; i < repeatsOf(size); i++) found.push(await runOnce(slipway, size));
        await checkSample(slipway, found.at(-1).run, { executed: false });
        const middle = (key) => median(found.map((each) => each[key]));
        return { rate: middle("rate"), wall: middle("wall"), cpu: found.at(-1).cpu };
      },
    }));
    const { values } = await alternate(contenders, options.rounds, say);
    const rates = (size) => values.get(size).map(({ rate }) => rate);
    const costs = (size) => rates(size).map((rate) => 1e6 / rate);
    const largest = sizes.at(-1);
    const throughput = sizes
      .filter((size) => size >= 100_000)
      .map((size) => ({
        name: `null-${size}`,
        title: `${named(size)} null tasks, submitted to finished, journal and TLS on`,
        unit: "tasks/s",
        better: "more",
        ours: rates(size),
        others: [
          {
            key: "typed",
            role: "part",
            label: "the whole command as typed",
            values: values.get(size).map(({ wall }) => wall),
          },
        ],
        skipped: {},
        wanted: [{ atLeast: 100_000 }],
        cpu: Object.fromEntries(
          ["server", "agent", "command"].map((key) => [key, summary(values.get(size).map(({ cpu }) => cpu[key]))]),
        ),
      }));
    return [
      ...throughput,
      {
        name: "growth",
        title: `cost of a null task in a run of ${named(largest)}, beside smaller runs`,
        unit: "µs/task",
        better: "less",
        limit: String(BASE),
        ours: costs(largest),
        others: sizes
          .filter((size) => size !== largest)
          .map((size) => ({
            key: String(size),
            role: size === BASE ? "limit" : "also",
            label: `in a run of ${named(size)}`,
            values: costs(size),
          })),
        skipped: {},
        wanted: [{ of: String(BASE), atMost: 1.2 }],
      },
    ];
  } finally {
    await slipway.close();
  }
};
