// Claim: a pilot costs its start and little else. From the submission of a first task to its start on a pilot that must
// first be requested, and what the server uses to keep 1, 10 and 40 idle pilots. The batch system is the simulated one,
// whose jobs are real agents of this machine and never wait.
import { setTimeout as sleep } from "node:timers/promises";
import { cpuOf } from "../cpu-time.mjs";
import { alternate } from "../rounds.mjs";
import { Broken, checkRun, checkSample } from "../sample.mjs";
import { connectTo, runThrough } from "../sdk.mjs";
import { openSlipway } from "../slipway.mjs";

const clustersOf = (pilots, least) => `clusters:
  here:
    type: simulated
    simulation: { nodes: ${pilots}, cores-per-node: 1, seed: 1 }
    queues:
      small: { nodes: 1, walltime: 1h, fleet: { min: ${least}, max: ${pilots}, init: ${least} } }
`;
const MOST_WAIT_MS = 120_000;
const one = { name: "first", cwd: "/", environment: {}, tasks: [{ run: ["/bin/true"] }] };

/** Milliseconds for a task without a pilot, and for the next one, which finds the pilot there. */
const measureFirst = async (options) => {
  const slipway = await openSlipway({ ...options, clusters: clustersOf(1, 0) });
  const client = await connectTo(slipway);
  try {
    const first = await runThrough(client, one);
    const warm = await runThrough(client, one);
    for (const { run } of [first, warm]) {
      checkRun(run, 1);
      await checkSample(slipway, run, { size: 1 });
    }
    return { first: first.ms, warm: warm.ms };
  } finally {
    client.close();
    await slipway.close();
  }
};

/** Milliseconds of the server's CPU time per second with this many idle pilots. */
const measureIdle = async (options, pilots, seconds) => {
  const slipway = await openSlipway({ ...options, clusters: clustersOf(pilots, pilots) });
  const client = await connectTo(slipway);
  try {
    const connected = async () =>
      (await client.status()).pilots.flatMap(({ agents }) => agents).filter(({ state }) => state === "connected")
        .length;
    for (const begun = performance.now(); (await connected()) < pilots; await sleep(200))
      if (performance.now() - begun > MOST_WAIT_MS) throw new Broken(`${await connected()} of ${pilots} pilots came`);
    const before = cpuOf(slipway.server).own;
    const begun = performance.now();
    await sleep(seconds * 1000);
    const cpu = cpuOf(slipway.server).own - before;
    return { cpu: (cpu * 1000) / (performance.now() - begun) };
  } finally {
    client.close();
    await slipway.close();
  }
};

export const measurePilots = async (options, say) => {
  const counts = options.sized([1, 10, 40], [1, 10], [1, 2]);
  const seconds = options.sized(10, 5, 1);
  const contenders = [
    {
      key: "first",
      label: "a first task",
      text: ({ first, warm }) => `${first.toFixed(0)} ms with its pilot's start, ${warm.toFixed(1)} ms the next`,
      measure: () => measureFirst(options),
    },
    ...counts.map((pilots) => ({
      key: pilots,
      label: `${pilots} idle pilots`,
      text: ({ cpu }) => `${cpu.toFixed(1)} ms of CPU a second`,
      measure: () => measureIdle(options, pilots, seconds),
    })),
  ];
  const { values } = await alternate(contenders, options.rounds, say);
  const pick = (key, what) => values.get(key).map((value) => value[what]);
  const largest = counts.at(-1);
  return [
    {
      name: "pilot-start",
      title: "one /bin/true for which a pilot has to be asked for and started first, from submit to its result",
      unit: "ms",
      better: "less",
      limit: "warm",
      ours: pick("first", "first"),
      others: [
        { key: "warm", role: "limit", label: "the next one, with the pilot there", values: pick("first", "warm") },
      ],
      skipped: {},
      wanted: [],
    },
    {
      name: "pilots-idle",
      title: `the server's CPU time with ${largest} pilots that have nothing to do`,
      unit: "ms/s",
      better: "less",
      ours: pick(largest, "cpu"),
      others: counts.slice(0, -1).map((pilots) => ({
        key: String(pilots),
        role: "part",
        label: `with ${pilots}`,
        values: pick(pilots, "cpu"),
      })),
      skipped: {},
      wanted: [],
    },
  ];
};
