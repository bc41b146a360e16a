// Claim: everything but spawning costs microseconds per task, and as much for the millionth as for the first. Tasks of
// the null executor through server, journal, agent and back, in runs of growing size. The journal cannot be switched off; its
// cost is measured separately, with a home in memory. The agent is on the server's machine and needs no TLS; what that would
// cost is measured with the same messages with and without it.
import { existsSync } from "node:fs";
import { nullArray, runNull } from "../null-run.mjs";
import { alternate } from "../rounds.mjs";
import { checkSample } from "../sample.mjs";
import { openSlipway } from "../slipway.mjs";
import { median, summary } from "../statistics.mjs";
import { wireCost } from "../wire.mjs";

const BASE = 10_000;
/** A file system in memory: the difference shows what the journal's disk costs. */
const IN_MEMORY = "/dev/shm";
/** Small runs are over in milliseconds: a round measures several. */
const repeatsOf = (size) => Math.max(1, Math.min(5, Math.floor(BASE / size)));
const named = (size) => size.toLocaleString("en");

const contender = (key, label, slipway, size) => ({
  key,
  label,
  text: ({ rate, wall }) => `${Math.round(rate)} tasks/s, ${Math.round(wall)} as typed`,
  measure: async () => {
    const found = [];
    for (let i = 0; i < repeatsOf(size); i++) found.push(await runNull(slipway, size, nullArray(size)));
    await checkSample(slipway, found.at(-1).run, { executed: false });
    const middle = (what) => median(found.map((each) => each[what]));
    return { rate: middle("rate"), wall: middle("wall"), cpu: found.at(-1).cpu };
  },
});

const throughput = (size, values, memory, wire) => {
  const pick = (key, what) => values.get(key).map((value) => value[what]);
  const others = [];
  if (memory)
    others.push({
      key: "memory",
      role: "also",
      label: "with the home in memory: no disk",
      values: pick(`memory-${size}`, "rate"),
    });
  others.push(
    {
      key: "tls",
      role: "part",
      label: "µs a task for its messages, both ends, with TLS",
      values: wire.map(({ tls }) => tls),
    },
    { key: "plain", role: "part", label: "the same without TLS", values: wire.map(({ plain }) => plain) },
  );
  const inside = {
    name: `null-${size}`,
    title: `${named(size)} null tasks, submitted to finished, journal on`,
    unit: "tasks/s",
    better: "more",
    ours: pick(size, "rate"),
    others,
    skipped: memory ? {} : { memory: `${IN_MEMORY} is not there` },
    wanted: [{ atLeast: 200_000 }],
    cpu: Object.fromEntries(
      ["server", "agent", "command"].map((key) => [key, summary(values.get(size).map(({ cpu }) => cpu[key]))]),
    ),
  };
  const typed = {
    name: `null-typed-${size}`,
    title: "the same, the whole command as typed",
    unit: "tasks/s",
    better: "more",
    ours: pick(size, "wall"),
    others: [],
    skipped: {},
    wanted: [{ atLeast: 400_000 }],
  };
  return [inside, typed];
};

export const measureNull = async (options, say) => {
  const sizes = options.sized([1000, BASE, 100_000, 1_000_000], [1000, BASE, 100_000], [100, 1000]);
  const base = options.sized(BASE, BASE, 100);
  const large = sizes.filter((size) => size >= options.sized(100_000, 100_000, 1000));
  const slipway = await openSlipway(options);
  const memory = existsSync(IN_MEMORY) ? await openSlipway({ ...options, dir: IN_MEMORY }) : undefined;
  try {
    for (const server of [slipway, memory]) if (server) await runNull(server, base, nullArray(base));
    const contenders = sizes.map((size) => contender(size, `${named(size)} null tasks`, slipway, size));
    if (memory)
      for (const size of large)
        contenders.push(contender(`memory-${size}`, `${named(size)} with the home in memory`, memory, size));
    contenders.push({
      key: "wire",
      label: "messages with and without TLS",
      text: ({ tls, plain }) => `${tls.toFixed(2)} and ${plain.toFixed(2)} µs a task`,
      measure: () => wireCost(sizes.at(-1)),
    });
    const { values } = await alternate(contenders, options.rounds, say);
    const costs = (size) => values.get(size).map(({ rate }) => 1e6 / rate);
    const largest = sizes.at(-1);
    return [
      ...large.flatMap((size) => throughput(size, values, memory !== undefined, values.get("wire"))),
      {
        name: "growth",
        title: `cost of a null task in a run of ${named(largest)}, beside smaller runs`,
        unit: "µs/task",
        better: "less",
        limit: String(base),
        ours: costs(largest),
        others: sizes
          .filter((size) => size !== largest)
          .map((size) => ({
            key: String(size),
            role: size === base ? "limit" : "also",
            label: `in a run of ${named(size)}`,
            values: costs(size),
          })),
        curve: sizes.map((size) => [size, median(costs(size))]),
        skipped: {},
        wanted: [{ of: String(base), atMost: 1.2 }],
      },
    ];
  } finally {
    await memory?.close();
    await slipway.close();
  }
};
