// Claim: a single task is back in milliseconds. From calling submit to knowing that it is done, through the SDK, on a
// warm and idle server; beside the same done by a C program in its own process.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compileLimits } from "../limits.mjs";
import { alternate } from "../rounds.mjs";
import { checkRun, checkSample } from "../sample.mjs";
import { openSlipway, root } from "../slipway.mjs";
import { quantile } from "../statistics.mjs";

const WARM = 20;
const document = { name: "latency", cwd: "/", tasks: [{ run: ["/bin/true"] }] };

const oneTask = async (client) => {
  const begun = performance.now();
  const { run: id } = await client.submit(document);
  const accepted = performance.now() - begun;
  let last;
  for await (const view of client.watch(id)) last = view;
  return { ms: performance.now() - begun, accepted, run: last };
};

export const measureLatency = async (options, say) => {
  const count = options.quick ? 50 : 200;
  const { connect } = await import(pathToFileURL(join(root, "dist", "client.js")).href);
  const slipway = await openSlipway(options);
  const client = connect({ home: slipway.home });
  let limits;
  try {
    limits = await compileLimits();
    for (let i = 0; i < WARM; i++) await oneTask(client);
    const text = ({ p50, p95, p99 }) => [p50, p95, p99].map((ms) => `${ms.toFixed(2)} ms`).join(", ");
    const contenders = [
      {
        key: "slipway",
        label: "slipway p50, p95, p99",
        text,
        measure: async () => {
          const found = [];
          for (let i = 0; i < count; i++) found.push(await oneTask(client));
          for (const { run } of found) checkRun(run, 1);
          for (let i = 0; i < 2; i++)
            await checkSample(slipway, found[Math.floor(Math.random() * count)].run, { size: 1 });
          const at = (q, key) =>
            quantile(
              found.map((each) => each[key]),
              q,
            );
          const p = (q) => at(q, "ms");
          return { p50: p(0.5), p95: p(0.95), p99: p(0.99), accepted: at(0.5, "accepted") };
        },
      },
      {
        key: "full",
        label: "C: with TMPDIR, session, output, one at a time",
        text: ({ ms }) => `${ms.toFixed(2)} ms`,
        optional: !limits.available,
        measure: async () => ({ ms: 1000 / (await limits.full(count, 1)) }),
      },
    ];
    const { values, skipped } = await alternate(contenders, options.rounds, say);
    const ours = (key) => values.get("slipway").map((value) => value[key]);
    const floor = values.get("full")?.map(({ ms }) => ms);
    return [
      {
        name: "latency",
        title: `one /bin/true on a warm, idle server, from submit to its result, p50 of ${count}`,
        unit: "ms",
        better: "less",
        ...(floor === undefined ? {} : { limit: "full" }),
        ours: ours("p50"),
        others: [
          ...(floor === undefined
            ? []
            : [{ key: "full", role: "limit", label: "C: with TMPDIR, session, output", values: floor }]),
          { key: "accepted", role: "part", label: "of which until accepted: on disk (p50)", values: ours("accepted") },
          { key: "p95", role: "part", label: "p95", values: ours("p95") },
          { key: "p99", role: "part", label: "p99", values: ours("p99") },
        ],
        skipped,
        wanted: [],
      },
    ];
  } finally {
    client.close();
    await slipway.close();
    await limits?.close();
  }
};
