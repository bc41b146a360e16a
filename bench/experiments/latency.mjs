// Claim: a single task is back in milliseconds. From calling submit to knowing that it is done, through the SDK, on a
// warm server: idle, compared with a C program that does the same in its own process; and with 100,000 tasks queued,
// with the answers of REST and command line under that load.
import { compileLimits } from "../limits.mjs";
import { alternate } from "../rounds.mjs";
import { Broken, checkRun, checkSample } from "../sample.mjs";
import { connectTo, runThrough } from "../sdk.mjs";
import { openSlipway } from "../slipway.mjs";
import { quantile } from "../statistics.mjs";

/**
 * The first tasks of a new server are shown separately: until the compiler has seen the code, they take twice as long; and so
 * are those in the middle of warming up, where it still makes some of them wait.
 */
const FIRST = 30;
const MIDDLE = 2000;
const WARM = 4000;
/** Each task of the load needs the one licence there is; the first of them keeps it, and the others wait. */
const CLUSTERS = "clusters: { local: { type: local, resources: { cpus: 2, licence: 1 } } }\n";
const task = { name: "latency", cwd: "/", environment: {}, tasks: [{ run: ["/bin/true"], priority: 1 }] };

const oneTask = (client) => runThrough(client, task);

const percentiles = (found) => {
  const at = (q, key) =>
    quantile(
      found.map((each) => each[key]),
      q,
    );
  return { p50: at(0.5, "ms"), p95: at(0.95, "ms"), p99: at(0.99, "ms"), accepted: at(0.5, "accepted") };
};
const text = ({ p50, p95, p99 }) => [p50, p95, p99].map((ms) => `${ms.toFixed(2)} ms`).join(", ");

/** One after the other. */
const several = async (client, count) => {
  const found = [];
  for (let i = 0; i < count; i++) found.push(await oneTask(client));
  return found;
};

const manyTasks = async (slipway, client, count) => {
  const found = await several(client, count);
  for (const { run } of found) checkRun(run, 1);
  for (let i = 0; i < 2; i++) await checkSample(slipway, found[Math.floor(Math.random() * count)].run, { size: 1 });
  return percentiles(found);
};

const timed = async (ask, count) => {
  const found = [];
  for (let i = 0; i < count; i++) {
    const begun = performance.now();
    await ask();
    found.push({ ms: performance.now() - begun, accepted: 0 });
  }
  return percentiles(found);
};

/** A server with this many tasks queued behind a licence. */
const openLoaded = async (options, queued) => {
  const slipway = await openSlipway({ ...options, clusters: CLUSTERS });
  const client = await connectTo(slipway);
  await oneTask(client);
  const load = { name: "load", cwd: "/", environment: {} };
  const { run } = await client.submit({
    ...load,
    tasks: [{ run: ["sleep", "100000"], resources: { licence: 1 }, each: { array: `1-${queued}` } }],
  });
  return { slipway, client, run };
};

const checkQueued = async (client, id, queued) => {
  const { counts, total } = await client.run(id);
  const over = (counts.DONE ?? 0) + (counts.FAILED ?? 0) + (counts.CANCELED ?? 0);
  if (total !== queued || over > 0) throw new Broken(`the load is ${JSON.stringify(counts)}, not ${queued} waiting`);
};

const ASKED = {
  runs: { label: "REST: list of runs", ask: ({ client }) => client.runs({ limit: 100 }) },
  run: { label: "REST: show of the queued run", ask: ({ client, run }) => client.run(run) },
  tasks: { label: "REST: 100 of its tasks", ask: ({ client, run }) => client.tasks(run, { limit: 100 }) },
  task: {
    label: "REST: show of one of its tasks",
    ask: ({ client, run, queued }) => client.task(run, 1 + Math.floor(Math.random() * queued)),
  },
  "cli-list": { label: "slipway list, as typed", ask: ({ slipway }) => slipway.ask("list") },
  "cli-show": { label: "slipway show RUN, as typed", ask: ({ slipway, run }) => slipway.ask("show", String(run)) },
};

/** How much longer than most the slowest take: p99 beside p50. */
const tailOf = (shared, pick, count, load) => ({
  ...shared,
  name: "latency-tail",
  title: `the same, p99 of ${count}`,
  limit: "p50",
  ours: pick("idle", "p99"),
  others: [
    { key: "p50", role: "limit", label: "p50", values: pick("idle", "p50") },
    { key: "loaded", role: "part", label: `p99 beside ${load} queued tasks`, values: pick("loaded", "p99") },
  ],
  wanted: [{ of: "p50", atMost: 2.5 }],
});

export const measureLatency = async (options, say) => {
  const count = options.sized(200, 50, 3);
  const queued = options.sized(100_000, 100_000, 1000);
  const slipway = await openSlipway(options);
  const client = await connectTo(slipway);
  let limits;
  let loaded;
  try {
    limits = await compileLimits();
    loaded = { ...(await openLoaded(options, queued)), queued };
    const first = percentiles(await several(client, options.sized(FIRST, FIRST, 3)));
    await several(client, options.sized(MIDDLE, MIDDLE, 3));
    const middle = percentiles(await several(client, options.sized(MIDDLE, MIDDLE, 3)));
    await several(client, options.sized(WARM - MIDDLE, WARM - MIDDLE, 3));
    await several(loaded.client, options.sized(MIDDLE + WARM, MIDDLE + WARM, 3));
    const contenders = [
      { key: "idle", label: "idle: p50, p95, p99", text, measure: () => manyTasks(slipway, client, count) },
      {
        key: "loaded",
        label: `with ${queued} queued: p50, p95, p99`,
        text,
        measure: async () => {
          const found = await manyTasks(loaded.slipway, loaded.client, count);
          await checkQueued(loaded.client, loaded.run, queued);
          return found;
        },
      },
      ...Object.entries(ASKED).map(([key, { label, ask }]) => ({
        key,
        label: `with ${queued} queued: ${label}`,
        text,
        measure: () => timed(() => ask(loaded), key.startsWith("cli") ? Math.ceil(count / 20) : count),
      })),
      {
        key: "full",
        label: "C: with TMPDIR, session, output, one at a time",
        text: ({ ms }) => `${ms.toFixed(2)} ms`,
        optional: !limits.available,
        measure: async () => ({ ms: 1000 / (await limits.full(count, 1)) }),
      },
    ];
    const { values, skipped } = await alternate(contenders, options.rounds, say);
    const pick = (key, what) => values.get(key).map((value) => value[what]);
    const floor = values.get("full")?.map(({ ms }) => ms);
    const parts = (key) => [
      { key: "accepted", role: "part", label: "of which until accepted: on disk (p50)", values: pick(key, "accepted") },
      { key: "p95", role: "part", label: "p95", values: pick(key, "p95") },
      { key: "p99", role: "part", label: "p99", values: pick(key, "p99") },
    ];
    const limit =
      floor === undefined
        ? []
        : [{ key: "full", role: "limit", label: "C: with TMPDIR, session, output", values: floor }];
    const shared = { unit: "ms", better: "less", skipped };
    const load = queued.toLocaleString("en");
    return [
      {
        ...shared,
        name: "latency",
        title: `one /bin/true on a warm, idle server, from submit to its result, p50 of ${count}`,
        ...(floor === undefined ? {} : { limit: "full" }),
        ours: pick("idle", "p50"),
        others: [
          ...limit,
          ...parts("idle"),
          { key: "first", role: "part", label: "the first tasks of a new server (p50)", values: [first.p50] },
          {
            key: "middle",
            role: "part",
            label: `its tasks ${MIDDLE + FIRST} to ${2 * MIDDLE + FIRST} (p50)`,
            values: [middle.p50],
          },
          { key: "middle-p99", role: "part", label: "the same (p99)", values: [middle.p99] },
        ],
        wanted: [{ atMost: 2 }, ...(floor === undefined ? [] : [{ of: "full", atMost: 2.6 }])],
      },
      tailOf(shared, pick, count, load),
      {
        ...shared,
        name: "latency-loaded",
        title: `the same beside ${load} queued tasks, at a higher priority than theirs`,
        limit: "idle",
        ours: pick("loaded", "p50"),
        others: [
          { key: "idle", role: "limit", label: "on the idle server", values: pick("idle", "p50") },
          ...parts("loaded"),
        ],
        wanted: [],
      },
      {
        ...shared,
        name: "looking",
        title: `looking at a server with ${load} queued tasks: show of that run, p50`,
        ours: pick("run", "p50"),
        others: Object.entries(ASKED).flatMap(([key, { label }]) => [
          ...(key === "run" ? [] : [{ key, role: "part", label: `${label} (p50)`, values: pick(key, "p50") }]),
          { key: `${key}-p99`, role: "part", label: `${label} (p99)`, values: pick(key, "p99") },
        ]),
        wanted: [],
      },
    ];
  } finally {
    client.close();
    loaded?.client.close();
    await loaded?.slipway.close();
    await slipway.close();
    await limits?.close();
  }
};
