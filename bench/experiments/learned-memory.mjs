// Claim: `mem: auto` runs more at once than asking for the worst case for all, and few tasks are killed for it. The shipped
// core, scheduler and what is learned, stepped by a simulated clock: nodes, tasks that need one amount or eight times as much,
// and kills that cost the whole attempt. Fixed seeds: the numbers are the same on every machine.
import { loadSource } from "../../scripts/load-source.mjs";
import { Broken } from "../sample.mjs";

const SOURCE = `
export { apply } from "./src/core/apply.ts";
export { createState } from "./src/core/state.ts";
export { decideMemory } from "./src/core/memory-retry.ts";
export { Ending } from "./src/core/events.ts";
export { groupOf, shapeOfRow } from "./src/core/run.ts";
export { FRACTION } from "./src/core/resources.ts";
export { buildRun } from "./src/config/build-run.ts";
export { readRunBody } from "./src/config/run-file.ts";
export { createScheduler } from "./src/scheduler/scheduler.ts";
export { createExpected } from "./src/learned/expected.ts";
export { createLearned } from "./src/learned/learned.ts";
export { LOOK_EVERY, learnedMemory, learnedRequests, waitingMemory } from "./src/learned/auto.ts";
export { createFirstTasks } from "./src/learned/first-tasks.ts";
export { holdBack } from "./src/scheduler/held-back.ts";
export { PeakBy, peakPages } from "./src/core/peak.ts";
export { requeueRun } from "./src/server/rebuild-queues.ts";
`;

/** `unknown-task-duration`, as it is unless somebody sets it. */
const PATIENCE_MS = 60_000;
const AT = 1_700_000_000_000;
const GIB = 2 ** 30;
const AGENTS = 4;
const CPUS = 64;
/** What most tasks need at most; they differ by a tenth. */
const LIGHT = 2 * GIB;
const TIMES = 8;
const SHARES = [1, 5, 20];
/**
 * Memory of a node for each of its cores: more than most tasks need, or less than any needs. Each is tried with a first
 * run, about whose template nothing is known, and with one that comes after a short one.
 */
const NODES = [
  { key: "4", perCore: 4 * GIB, known: false, text: "4 GiB each; the first run of its template" },
  { key: "4-later", perCore: 4 * GIB, known: true, text: "4 GiB each; known from an earlier run" },
  { key: "1", perCore: 1 * GIB, known: false, text: "1 GiB each; the first run of its template" },
  { key: "1-later", perCore: 1 * GIB, known: true, text: "1 GiB each; known from an earlier run" },
];
/** Tasks of that earlier run. */
const EARLIER = 2000;
/** Held out: what is tried next, in which order, and how many go first, was chosen with 11, 23, 37, 41 and 59. */
const SEEDS = [101, 211, 307, 401, 503];

/** Numbers from 0 to 1, the same for the same seed. */
const randomOf = (seed) => {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
};

/** What each task needs, and how long it takes: a minute in the mean. */
const tasksOf = (seed, share, count) => {
  const random = randomOf(seed);
  return Array.from({ length: count }, () => {
    const size = LIGHT * (0.9 + 0.1 * random());
    return { peak: random() * 100 < share ? size * TIMES : size, ms: 20_000 + 80_000 * random() };
  });
};

/** Nodes that run what fits, in the order in which it came. */
const createNodes = (node) => {
  const nodes = Array.from({ length: AGENTS + 1 }, () => ({ free: { ...node }, waiting: [] }));
  const fits = (free, asked) => Object.entries(asked).every(([name, units]) => (free[name] ?? 0) >= units);
  return {
    give: (agent, row, asked) => nodes[agent].waiting.push({ row, asked }),
    /** Starts what fits now. */
    begin: (agent, start) => {
      const { free, waiting } = nodes[agent];
      nodes[agent].waiting = waiting.filter(({ row, asked }) => {
        if (!fits(free, asked)) return true;
        for (const name in asked) free[name] -= asked[name];
        start(row, asked);
        return false;
      });
    },
    end: (agent, asked) => {
      for (const name in asked) nodes[agent].free[name] += asked[name];
    },
  };
};

const ended = (core, agent, seq, row, attempt, from, to, enough, peak) => ({
  type: "tasks.ended",
  at: to,
  agent,
  seq,
  parts: [
    {
      run: 1,
      rows: Uint32Array.of(row),
      attempt,
      ending: enough ? core.Ending.EXIT : core.Ending.MEMORY,
      code: enough ? 0 : -9,
      started: from,
      finished: to,
      outAt: -1,
      outBytes: 0,
      errBytes: 0,
      details: [],
      peak: core.peakPages(peak),
      peakBy: core.PeakBy.CGROUP,
    },
  ],
});

/** A server's state, scheduler and memory of what was learned, with nodes and a clock that are simulated. */
const createWorld = (core, perCore, learned) => {
  const node = { cpus: CPUS * core.FRACTION, mem: CPUS * perCore };
  const state = core.createState(5);
  const expected = core.createExpected(learned, { defaultCluster: "c", unknownMs: () => PATIENCE_MS });
  const first = core.createFirstTasks(expected);
  const scheduler = core.holdBack(core.createScheduler(), first.mayGo);
  const memoryOf = { most: () => node.mem, share: () => perCore };
  const advice = { largest: () => node.mem, learned: core.learnedMemory(expected, memoryOf) };
  const counts = { kills: 0, killedNow: 0, wellNow: 0, endedNow: 0 };
  const world = { state, scheduler, expected, nodes: createNodes(node), now: AT, heard: AT, ...counts };
  const nothing = () => undefined;
  const effects = new Proxy(
    {
      ready: (run, from, count) => scheduler.ready(run, from, count),
      left: (run, row, agent) => scheduler.left(run, row, agent),
      unqueue: (run) => scheduler.unqueue(run),
      requeue: (run) => core.requeueRun(run, scheduler, () => world.now, nothing),
      finished: (run) => scheduler.dropRun(run),
      ended: (run, row) => {
        const [group] = run.groups;
        expected.taskEnded(run, row);
        world.endedNow += 1;
        if (core.shapeOfRow(group, row).resources.mem <= core.waitingMemory(group)) world.wellNow += 1;
      },
      attemptOver: (run, _row, attempt) => {
        world.kills += 1;
        if ((attempt.mem ?? 0) >= core.waitingMemory(run.groups[0])) world.killedNow += 1;
      },
    },
    { get: (known, name) => known[name] ?? nothing },
  );
  world.commit = (event) => core.apply(state, core.decideMemory(state, event, advice), effects);
  /** What a server does when a run comes in, every few ends, and when a task was killed. */
  world.look = (run, [group] = run.groups) => {
    if (group.spec.auto === undefined) return;
    world.endedNow = 0;
    first.heard(group, world.wellNow, world.killedNow);
    const change = core.learnedRequests(expected, memoryOf, run, group, world.killedNow);
    if (change !== undefined) {
      world.killedNow = world.wellNow = 0;
      world.commit({ type: "run.requests", at: world.now, ...change });
    }
    scheduler.release(run, group);
  };
  /** Nothing was heard of the first tasks for so long that the others may go. */
  world.isQuiet = (run, until, [group] = run.groups) => scheduler.holds(group) && until > world.heard + PATIENCE_MS;
  world.goOn = (run, [group] = run.groups) => {
    world.now = world.heard += PATIENCE_MS;
    first.open(group);
    scheduler.release(run, group);
  };
  for (let id = 1; id <= AGENTS; id++) {
    const about = { uuid: `a${id}`, pilot: 1, host: `n${id}`, version: "0", output: "", seq: 0 };
    world.commit({ type: "agent.joined", at: AT, agent: id, ...about, resources: node });
    scheduler.addAgent({ id, pilot: 1, host: `n${id}`, resources: node, cluster: "c", queue: "q", endsAt: Infinity });
  }
  return world;
};

const submit = (core, { commit, state }, mem, perCore, count) => {
  const task = { run: ["x"], each: { array: `1-${count}` }, mem };
  const body = { name: "m", cwd: "/", environment: {}, tasks: [task] };
  const { spec } = core.buildRun(core.readRunBody(body), { limit: count });
  // the server fills in what the first tasks get
  const first = (group) => ({ ...group, resources: { ...group.resources, mem: group.resources.mem ?? perCore } });
  commit({ type: "run.opened", at: AT, run: 1, uuid: "u", spec: { ...spec, groups: spec.groups.map(first) } });
  commit({ type: "run.committed", at: AT, run: 1 });
  return state.runs.get(1);
};

/** Places what can be placed, and starts what fits. */
const place = (core, { scheduler, commit, nodes, now }, group, start) => {
  for (const { agent, parts } of scheduler.pass(now)) {
    commit({ type: "tasks.assigned", at: now, agent, parts });
    for (const { ranges } of parts)
      for (let i = 0; i < ranges.length; i += 2)
        for (let row = ranges[i]; row < ranges[i] + ranges[i + 1]; row++)
          nodes.give(agent, row, core.shapeOfRow(group, row).resources);
  }
  for (let agent = 1; agent <= AGENTS; agent++) nodes.begin(agent, start(agent));
};

/** Runs all tasks to their end; `mem` is what the run's file says. */
const simulate = (core, { mem, perCore, tasks, learned = core.createLearned() }) => {
  const world = createWorld(core, perCore, learned);
  const run = submit(core, world, mem, perCore, tasks.length);
  const [group] = run.groups;
  world.expected.begin(run);
  world.look(run);
  const seqs = new Uint32Array(AGENTS + 1);
  /** What runs, the soonest end last. */
  const running = [];
  const start = (agent) => (row, asked) => {
    const { peak, ms } = tasks[row];
    const task = { agent, row, asked, from: world.now, to: world.now + ms, enough: asked.mem >= peak, peak };
    let at = running.length;
    while (at > 0 && running[at - 1].to < task.to) at -= 1;
    running.splice(at, 0, task);
  };
  while (run.finished === 0) {
    place(core, world, group, start);
    const task = running.pop();
    if (task === undefined) throw new Broken("nothing runs, and not all tasks have ended");
    const { agent, row, asked, from, to, enough, peak } = task;
    if (world.isQuiet(run, to)) {
      running.push(task);
      world.goOn(run);
      continue;
    }
    world.now = world.heard = to;
    world.nodes.end(agent, asked);
    const attempt = run.table.pages[Math.floor(row / run.table.pageRows)].attempt[row % run.table.pageRows];
    world.commit(ended(core, agent, ++seqs[agent], row, attempt, from, to, enough, peak));
    if (world.endedNow >= core.LOOK_EVERY || world.killedNow > 0 || world.scheduler.holds(group)) world.look(run);
  }
  if (group.done !== tasks.length) throw new Broken(`${group.done} of ${tasks.length} tasks ended well`);
  return {
    perHour: (tasks.length * 3_600_000) / (world.now - AT),
    kills: (100 * world.kills) / tasks.length,
  };
};

/** What a careful user asks for without `auto`: enough for the largest, with no kill. */
const SAFE = `${Math.ceil((LIGHT * TIMES) / GIB)}G`;

export const measureLearnedMemory = async (options, say) => {
  const core = await loadSource(SOURCE);
  const count = options.quick ? 2000 : 20_000;
  const seeds = options.quick ? SEEDS.slice(0, 1) : SEEDS;
  return NODES.flatMap(({ key, perCore, known, text }) =>
    SHARES.flatMap((share) => {
      const results = seeds.map((seed) => {
        const tasks = tasksOf(seed, share, count);
        const store = core.createLearned();
        const earlier = { mem: "auto", perCore, tasks: tasksOf(seed + 1000, share, EARLIER), learned: store };
        const first = known ? simulate(core, earlier) : undefined;
        const learned = simulate(core, { mem: "auto", perCore, tasks, learned: store });
        const safe = simulate(core, { mem: SAFE, perCore, tasks });
        say(
          `${key} GiB a core, ${share} % need ${TIMES} times as much, seed ${seed}: ${(learned.perHour / safe.perHour).toFixed(2)} × the throughput, ${learned.kills.toFixed(2)} kills for 100 tasks`,
        );
        return { learned, safe, first };
      });
      const about = `${share} % of ${count.toLocaleString("en")} tasks need ${TIMES} times as much; ${AGENTS} nodes of ${CPUS} cores, ${text}`;
      return [
        {
          name: `learned-memory-${share}-${key}`,
          title: `mem: auto, simulated: ${about}`,
          unit: "tasks an hour",
          better: "more",
          ours: results.map(({ learned }) => learned.perHour),
          others: [
            {
              key: "safe",
              role: "limit",
              label: `mem: ${SAFE}, enough for all`,
              values: results.map(({ safe }) => safe.perHour),
            },
          ],
          skipped: {},
          simulated: true,
          wanted: [{ of: "safe", atLeast: share < 20 ? 1.5 : 1 }],
        },
        {
          name: `learned-memory-kills-${share}-${key}`,
          title: `mem: auto, simulated: kills, where ${about}`,
          unit: "kills for 100 tasks",
          better: "less",
          ours: results.map(({ learned }) => learned.kills),
          others: known
            ? [
                {
                  key: "first",
                  role: "part",
                  label: `in that earlier run of ${EARLIER.toLocaleString("en")} tasks, with nothing known`,
                  values: results.map(({ first }) => first.kills),
                },
              ]
            : [],
          skipped: {},
          simulated: true,
          wanted: [{ atMost: share + 1 }],
        },
      ];
    }),
  );
};
