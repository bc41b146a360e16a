// Claim: a killed server is back in seconds, however much it has done, and its agents find it again. A million finished
// tasks (of light agents, with times and output sizes as varied as real ones), the server killed and started again:
// before and after compaction. Then tasks that run while the server is killed: their agent is back within seconds, and
// they never notice.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { NO_FLEET, startLightAgents } from "../light-agents.mjs";
import { nullArray, runNull } from "../null-run.mjs";
import { alternate } from "../rounds.mjs";
import { Broken, checkRun, checkSample } from "../sample.mjs";
import { connectTo } from "../sdk.mjs";
import { openSlipway } from "../slipway.mjs";

/** How long to wait for an agent before the experiment counts as broken. */
const MOST_WAIT_MS = 60_000;

/** Megabytes (10^6) of a directory and everything below it. */
const sizeOf = async (directory) => {
  let bytes = 0;
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []))
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath ?? entry.path, entry.name))).size;
  return bytes / 1e6;
};

const until = async (what, check) => {
  const begun = performance.now();
  while (!(await check())) {
    if (performance.now() - begun > MOST_WAIT_MS) throw new Broken(`${what} within ${MOST_WAIT_MS / 1000} s: not so`);
    await sleep(5);
  }
  return (performance.now() - begun) / 1000;
};

/** Seconds after the server's return until the agent of running tasks is connected again. */
const measureReconnect = async (options) => {
  const slipway = await openSlipway(options);
  const client = await connectTo(slipway);
  try {
    const tasks = [{ run: ["sleep", "4"], each: { array: "1-2" } }];
    const { run } = await client.submit({ name: "running", cwd: "/", environment: {}, tasks });
    await until("tasks running", async () => (await client.run(run)).counts.AGENT_EXECUTING > 0);
    await slipway.kill();
    await slipway.restart();
    const isConnected = ({ agents }) => agents.some(({ state }) => state === "connected");
    const reconnect = await until("the agent connected", async () => (await client.status()).pilots.some(isConnected));
    let last;
    for await (const view of client.watch(run)) last = view;
    checkRun(last, 2);
    await checkSample(slipway, last, { size: 2 });
    return { reconnect };
  } finally {
    client.close();
    await slipway.close();
  }
};

const measureReload = async (options, tasks) => {
  const slipway = await openSlipway({ ...options, clusters: NO_FLEET });
  try {
    await slipway.kill();
    const empty = await slipway.restart();
    await startLightAgents(slipway, 2, { cpus: 1024, mode: "vary" });
    const { run } = await runNull(slipway, tasks, nullArray(tasks));
    await slipway.kill();
    const reload = await slipway.restart();
    await checkSample(slipway, run, { executed: false });
    await slipway.run(["journal", "compact"]);
    const sizes = await Promise.all(["journal", "runs"].map((name) => sizeOf(join(slipway.home, name))));
    await slipway.kill();
    const compacted = await slipway.restart();
    await checkSample(slipway, run, { executed: false });
    return { empty, reload, compacted, megabytes: sizes.reduce((sum, each) => sum + each) };
  } finally {
    await slipway.close();
  }
};

export const measureRestart = async (options, say) => {
  const tasks = options.sized(1_000_000, 100_000, 1000);
  const contenders = [
    {
      key: "reload",
      label: "killed and started again",
      text: ({ reload, compacted, megabytes }) =>
        `${reload.toFixed(2)} s, compacted ${compacted.toFixed(2)} s and ${megabytes.toFixed(1)} MB`,
      measure: () => measureReload(options, tasks),
    },
    {
      key: "reconnect",
      label: "an agent with running tasks",
      text: ({ reconnect }) => `back after ${reconnect.toFixed(2)} s`,
      measure: () => measureReconnect(options),
    },
  ];
  const { values } = await alternate(contenders, options.rounds, say);
  const pick = (what, key = "reload") => values.get(key).map((value) => value[what]);
  const named = tasks.toLocaleString("en");
  const shared = { better: "less", skipped: {} };
  return [
    {
      ...shared,
      name: "restart",
      title: `slipway up after kill -9, with ${named} finished tasks in the journal`,
      unit: "s",
      limit: "empty",
      ours: pick("reload"),
      others: [
        { key: "empty", role: "limit", label: "with an empty journal", values: pick("empty") },
        { key: "compacted", role: "part", label: "after compaction", values: pick("compacted") },
      ],
      wanted: [{ atMost: 5 }],
    },
    {
      ...shared,
      name: "restart-size",
      title: `journal and archive of ${named} finished tasks after compaction`,
      unit: "MB",
      ours: pick("megabytes"),
      others: [],
      wanted: [{ atMost: 100 }],
    },
    {
      ...shared,
      name: "reconnect",
      title:
        "from the server's return until the agent of running tasks is connected again; the tasks go on undisturbed",
      unit: "s",
      ours: pick("reconnect", "reconnect"),
      others: [],
      wanted: [{ atMost: 3 }],
    },
  ];
};
