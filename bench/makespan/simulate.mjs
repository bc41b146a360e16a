// Runs a graph to its end with the shipped core and scheduler, stepped by a simulated clock. Agents start what they have in
// the order in which it came, hold what is prefetched, and give back what they are asked for, as real ones do.
import { loadSource } from "../../scripts/load-source.mjs";
import { Broken } from "../sample.mjs";

const SOURCE = `
export { apply } from "./src/core/apply.ts";
export { createState } from "./src/core/state.ts";
export { FRACTION } from "./src/core/resources.ts";
export { DEFAULT_PREFETCH } from "./src/scheduler/capacity.ts";
export { FIRST_COME } from "./src/scheduler/order.ts";
export { createPressureOrder } from "./src/scheduler/pressure-order.ts";
export { createScheduler } from "./src/scheduler/scheduler.ts";
`;

export const loadCore = () => loadSource(SOURCE);

const AT = 1_700_000_000_000;
const CORES_OF_NODE = 16;

/** Every task a group of its own, as in a file that names each. */
export const specOf = (core, tasks) => ({
  name: "graph",
  cwd: "/",
  env: {},
  numbering: { start: 0, step: 1 },
  groups: tasks.map(({ after }, i) => ({
    name: `t${i}`,
    command: ["x"],
    items: { kind: "one" },
    after: after.map((group) => ({ group, on: "ok" })),
    resources: { cpus: core.FRACTION },
    priority: 0,
    retries: 0,
    retryDelay: 0,
    executor: "process",
  })),
});

/** A run that was just submitted, of which nobody places anything. */
export const runOf = (core, spec) => {
  const state = core.createState(5);
  const nobody = new Proxy({}, { get: () => () => undefined });
  core.apply(state, { type: "run.opened", at: AT, run: 1, uuid: "u", spec }, nobody);
  core.apply(state, { type: "run.committed", at: AT, run: 1 }, nobody);
  return state.runs.get(1);
};

/** Attempts by the time of their end. */
const createHeap = () => {
  const heap = [];
  const swap = (a, b) => ([heap[a], heap[b]] = [heap[b], heap[a]]);
  return {
    get first() {
      return heap[0];
    },
    push: (entry) => {
      let at = heap.push(entry) - 1;
      for (let up = (at - 1) >> 1; at > 0 && heap[up].at > heap[at].at; at = up, up = (at - 1) >> 1) swap(at, up);
    },
    pop: () => {
      const [first] = heap;
      const last = heap.pop();
      if (heap.length === 0) return first;
      heap[0] = last;
      for (let at = 0; ;) {
        let least = at;
        for (const child of [2 * at + 1, 2 * at + 2])
          if (child < heap.length && heap[child].at < heap[least].at) least = child;
        if (least === at) return first;
        swap(at, least);
        at = least;
      }
    },
  };
};

const endedEvent = (agent, seq, at, attempts) => ({
  type: "tasks.ended",
  at,
  agent,
  seq,
  parts: [
    {
      run: 1,
      rows: Uint32Array.from(attempts, ({ row }) => row),
      attempt: 1,
      ending: 0,
      code: 0,
      started: Float64Array.from(attempts, ({ from }) => from),
      finished: at,
      outAt: -1,
      outBytes: 0,
      errBytes: 0,
      details: [],
    },
  ],
});

/** What agents have, and when it ends. */
const createAgents = (count, tasks) => {
  const running = createHeap();
  const agents = Array.from({ length: count + 1 }, () => ({ free: CORES_OF_NODE, queue: [], seq: 0 }));
  const start = (id, now) => {
    const agent = agents[id];
    while (agent.free > 0 && agent.queue.length > 0) {
      const row = agent.queue.shift();
      agent.free -= 1;
      // whole milliseconds, as everywhere
      running.push({ at: now + Math.max(1, Math.round(tasks[row].seconds * 1000)), id, row, from: now });
    }
  };
  return {
    agents,
    running,
    start,
    take: (id, rows, now) => {
      agents[id].queue.push(...rows);
      start(id, now);
    },
    /** The last that came, as many as it has not begun. */
    giveBack: (id, most) => agents[id].queue.splice(Math.max(0, agents[id].queue.length - most)),
  };
};

const rowsIn = ({ parts }) =>
  parts.flatMap(({ ranges }) => {
    const rows = [];
    for (let i = 0; i < ranges.length; i += 2)
      for (let row = ranges[i]; row < ranges[i] + ranges[i + 1]; row++) rows.push(row);
    return rows;
  });

const joined = (core, commit, scheduler, count) => {
  const resources = { cpus: CORES_OF_NODE * core.FRACTION };
  for (let id = 1; id <= count; id++) {
    const about = { uuid: `a${id}`, pilot: 1, host: `n${id}`, version: "0", output: "", seq: 0 };
    commit({ type: "agent.joined", at: AT, agent: id, ...about, resources });
    scheduler.addAgent({ id, pilot: 1, host: `n${id}`, resources, cluster: "c", queue: "q", endsAt: Infinity });
  }
};

/** Seconds until all have ended. `expected` are seconds. */
export const simulate = (core, { tasks, spec, cores, order, expected }) => {
  const state = core.createState(5);
  const scheduler = core.createScheduler(core.DEFAULT_PREFETCH, undefined, [], order);
  const nothing = () => undefined;
  let run;
  const effects = {
    ready: (of, from, count) => {
      // what is expected is known before the first is placed
      if (run === undefined) for (const group of of.groups) group.expectedMs = expected[group.index] * 1000;
      run = of;
      scheduler.ready(of, from, count);
    },
    left: (of, row, agent) => scheduler.left(of, row, agent),
    finished: (of) => scheduler.dropRun(of),
  };
  const known = new Proxy(effects, { get: (all, name) => all[name] ?? nothing });
  const commit = (event) => core.apply(state, event, known);
  const count = cores / CORES_OF_NODE;
  const { agents, running, start, take, giveBack } = createAgents(count, tasks);
  joined(core, commit, scheduler, count);
  commit({ type: "run.opened", at: AT, run: 1, uuid: "u", spec });
  commit({ type: "run.committed", at: AT, run: 1 });
  let now = AT;
  const place = () => {
    for (const assignment of scheduler.pass(now)) {
      const { agent, parts } = assignment;
      commit({ type: "tasks.assigned", at: now, agent, parts });
      take(agent, rowsIn(assignment), now);
    }
  };
  /** What waits at busy agents goes where there is room. */
  const rebalance = () => {
    const given = scheduler.rebalance(now).asks.flatMap(({ agent, count: most }) => {
      const rows = giveBack(agent, most);
      const ranges = rows.flatMap((row) => [row, 1]);
      if (rows.length > 0) commit({ type: "tasks.returned", at: now, agent, parts: [{ run: 1, ranges }] });
      return rows;
    });
    if (given.length > 0) place();
  };
  place();
  while (running.first !== undefined) {
    now = running.first.at;
    const over = new Map();
    while (running.first?.at === now) {
      const attempt = running.pop();
      over.set(attempt.id, [...(over.get(attempt.id) ?? []), attempt]);
    }
    for (const [id, attempts] of over) {
      const agent = agents[id];
      agent.free += attempts.length;
      agent.seq += 1;
      commit(endedEvent(id, agent.seq, now, attempts));
      start(id, now);
    }
    place();
    rebalance();
  }
  if (run === undefined || run.finished === 0) throw new Broken(`${tasks.length} tasks did not come to their end`);
  return (now - AT) / 1000;
};
