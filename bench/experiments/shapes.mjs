// Claim: tasks that all ask for different resources cost little more than tasks that all ask for the same, and the
// server keeps answering meanwhile. Null tasks whose cpus, memory and licences come from their items, streamed from a
// file.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runNull } from "../null-run.mjs";
import { alternate } from "../rounds.mjs";
import { checkSample } from "../sample.mjs";
import { connectTo } from "../sdk.mjs";
import { openSlipway } from "../slipway.mjs";
import { quantile } from "../statistics.mjs";

const named = (value) => value.toLocaleString("en");

/** A laptop with more licences than its tasks ask for at once. */
const CLUSTERS = "clusters: { local: { type: local, resources: { red: 1000, blue: 1000 } } }\n";

/** No two alike among 100,000, in cpus, memory and licences. */
const itemOf = (i) => ({
  cpus: (1 + (i % 100)) / 100,
  mem: `${1 + (Math.floor(i / 100) % 100)}M`,
  red: 1 + Math.floor(i / 10_000),
  blue: i % 3,
});

const runFile = (items) => `tasks:
  - name: t
    executor: null
    each: { json: ${items} }
    cpus: "{item.cpus}"
    mem: "{item.mem}"
    resources: { red: "{item.red}", blue: "{item.blue}" }
    run: [/bin/true]
`;

/** Asks again and again until `work` is over; returns how long the answers took. */
const askMeanwhile = async (client, work) => {
  const took = [];
  let over = false;
  const done = work.finally(() => (over = true));
  while (!over) {
    const begun = performance.now();
    await client.runs({ limit: 1 });
    took.push(performance.now() - begun);
    await sleep(2);
  }
  return { found: await done, took };
};

const contender = (slipway, client, directory, shapes, tasks) => ({
  key: String(shapes),
  label: `${named(shapes)} shape${shapes === 1 ? "" : "s"}`,
  text: ({ rate, cpu, answer }) =>
    `${(1e6 / rate).toFixed(2)} µs a task (CPU: server ${cpu.server.toFixed(1)}, agent ${cpu.agent.toFixed(1)}), answers p99.9 ${answer.toFixed(0)} ms`,
  measure: async () => {
    // the one shape is one of the many: what a task asks for must not make the difference
    const items = Array.from({ length: tasks }, (_, i) => JSON.stringify(itemOf(shapes === 1 ? 5050 : i)));
    await writeFile(join(directory, "items.json"), items.join("\n"));
    const file = join(directory, "run.yaml");
    await writeFile(file, runFile(join(directory, "items.json")));
    const { found, took } = await askMeanwhile(client, runNull(slipway, tasks, [file]));
    await checkSample(slipway, found.run, { executed: false });
    return { ...found, answer: quantile(took, 0.999) };
  },
});

export const measureShapes = async (options, say) => {
  const tasks = options.sized(100_000, 20_000, 100);
  const slipway = await openSlipway({ ...options, clusters: CLUSTERS });
  const directory = await mkdtemp(join(tmpdir(), "slipway-shapes-"));
  try {
    const client = await connectTo(slipway);
    const contenders = [1, tasks].map((shapes) => contender(slipway, client, directory, shapes, tasks));
    // compiled before timing
    for (const { measure } of contenders) await measure();
    const { values } = await alternate(contenders, options.rounds, say);
    const costs = (key) => values.get(String(key)).map(({ rate }) => 1e6 / rate);
    const answers = (key) => values.get(String(key)).map(({ answer }) => answer);
    const many = named(tasks);
    return [
      {
        name: "shapes",
        title: `cost of a null task among ${many} that each ask for something else`,
        unit: "µs/task",
        better: "less",
        limit: "one",
        ours: costs(tasks),
        others: [{ key: "one", role: "limit", label: "all of one shape", values: costs(1) }],
        skipped: {},
        wanted: [{ of: "one", atMost: 3 }],
      },
      {
        name: "shapes-answers",
        title: `answers of REST while ${many} tasks of ${many} shapes are submitted and run: p99.9`,
        unit: "ms",
        better: "less",
        ours: answers(tasks),
        others: [{ key: "one", role: "also", label: "all of one shape", values: answers(1) }],
        skipped: {},
        wanted: [{ atMost: 100 }],
      },
    ];
  } finally {
    await rm(directory, { recursive: true, force: true });
    await slipway.close();
  }
};
