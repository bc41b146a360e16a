// Claim: what a task pays for being measured, told of and put in order is known, each by itself. The server's CPU time for null
// tasks through light agents: bare results, results with everything that a process used, and bare ones while somebody follows
// all events. Pressure: graphs of single tasks through the shipped core and scheduler, beside first come, first served.
import { NO_FLEET, startLightAgents } from "../light-agents.mjs";
import { FAMILIES } from "../makespan/graphs.mjs";
import { loadCore, simulate, specOf } from "../makespan/simulate.mjs";
import { nullArray, runNull } from "../null-run.mjs";
import { alternate } from "../rounds.mjs";
import { Broken, checkSample } from "../sample.mjs";
import { connectTo } from "../sdk.mjs";
import { journalBytes, openSlipway } from "../slipway.mjs";

const AGENTS = 10;

/** Reads all events of a server as they come; `seen` are ends of tasks. */
const follow = async (slipway) => {
  const client = await connectTo(slipway);
  const left = new AbortController();
  const follower = { seen: 0, close: undefined };
  const reading = (async () => {
    for await (const { event } of client.events({ follow: true, signal: left.signal }))
      if (event === "task.ended") follower.seen += 1;
  })();
  follower.close = async () => {
    left.abort();
    await reading.catch(() => undefined);
    client.close();
  };
  return follower;
};

/** A server with agents that answer in this way. */
const openServer = async (options, mode, followed) => {
  const slipway = await openSlipway({ ...options, clusters: NO_FLEET });
  try {
    await startLightAgents(slipway, AGENTS, { mode });
    const follower = followed ? await follow(slipway) : undefined;
    return { slipway, follower };
  } catch (error) {
    await slipway.close();
    throw error;
  }
};

const SERVERS = {
  bare: { label: "times and output alone", mode: "brief", followed: false },
  usage: { label: "with peak memory, CPU time and I/O of every task", mode: "usage", followed: false },
  followed: { label: "with a follower of all events", mode: "brief", followed: true },
};

const measureServers = async (options, tasks, say) => {
  const open = new Map();
  try {
    for (const [key, { mode, followed }] of Object.entries(SERVERS)) {
      open.set(key, await openServer(options, mode, followed));
      // compiled, and the duration of the template is known
      await runNull(open.get(key).slipway, tasks / 5, nullArray(tasks / 5));
    }
    const contenders = Object.entries(SERVERS).map(([key, { label }]) => ({
      key,
      label,
      text: ({ cpu, bytes }) => `${cpu.toFixed(2)} µs of the server's CPU a task, ${bytes.toFixed(1)} bytes of journal`,
      measure: async () => {
        const { slipway, follower } = open.get(key);
        const [before, seen] = [await journalBytes(slipway), follower?.seen];
        const { run, cpu } = await runNull(slipway, tasks, nullArray(tasks));
        await checkSample(slipway, run, { executed: false });
        if (follower !== undefined && follower.seen === seen) throw new Broken("the follower has heard of no task");
        return { cpu: cpu.server, bytes: ((await journalBytes(slipway)) - before) / tasks };
      },
    }));
    return (await alternate(contenders, options.rounds, say)).values;
  } finally {
    for (const { slipway, follower } of open.values()) {
      await follower?.close();
      await slipway.close();
    }
  }
};

/** CPU microseconds a task of core and scheduler, until all have ended. */
const orderCost = (core, tasks, order) => {
  const spec = specOf(core, tasks);
  const expected = tasks.map(({ seconds }) => seconds);
  const before = process.cpuUsage();
  simulate(core, { tasks, spec, cores: 512, order, expected });
  const { user, system } = process.cpuUsage(before);
  return (user + system) / tasks.length;
};

const measureOrders = async (options, size, say) => {
  const core = await loadCore();
  const orders = {
    pressure: () => core.createPressureOrder((_run, { expectedMs }) => expectedMs),
    first: () => core.FIRST_COME,
  };
  for (const make of Object.values(orders)) orderCost(core, FAMILIES.layered(size, 1), make());
  const contenders = Object.entries(orders).map(([key, make]) => ({
    key,
    label: key === "first" ? "first come, first served" : "by pressure",
    text: (cost) => `${cost.toFixed(2)} µs of CPU a task`,
    measure: async (round) => orderCost(core, FAMILIES.layered(size, 100 + round), make()),
  }));
  return (await alternate(contenders, options.rounds, say)).values;
};

export const measurePrices = async (options, say) => {
  const tasks = options.sized(500_000, 50_000, 100);
  const size = options.sized(20_000, 5000, 100);
  const servers = await measureServers(options, tasks, say);
  const orders = await measureOrders(options, size, say);
  const named = (value) => value.toLocaleString("en");
  const of = (key, what) => servers.get(key).map((value) => value[what]);
  const entry = (key, title) => ({
    name: `price-${key === "followed" ? "events" : key}`,
    title,
    unit: "µs a task",
    better: "less",
    ours: of(key, "cpu"),
    limit: "bare",
    others: [
      { key: "bare", role: "limit", label: SERVERS.bare.label, values: of("bare", "cpu") },
      { key: "bytes", role: "part", label: "bytes of journal a task", values: of(key, "bytes") },
      { key: "bare-bytes", role: "part", label: `the same, ${SERVERS.bare.label}`, values: of("bare", "bytes") },
    ],
    skipped: {},
    wanted: [],
  });
  return [
    entry("usage", `the server's CPU for ${named(tasks)} null tasks whose results say what each used`),
    entry("followed", `the server's CPU for ${named(tasks)} null tasks while somebody follows all events`),
    {
      name: "price-pressure",
      title: `core and scheduler, a graph of ${named(size)} single tasks until its end: by pressure`,
      unit: "µs a task",
      better: "less",
      ours: orders.get("pressure"),
      limit: "first",
      others: [{ key: "first", role: "limit", label: "first come, first served", values: orders.get("first") }],
      skipped: {},
      wanted: [],
    },
  ];
};
