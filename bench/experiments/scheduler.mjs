// Claim: a decision costs microseconds per task, whatever the mix. The scheduler alone: no journal, no network, no
// processes, only the state it decides on. A pass over many agents and shapes, and all tasks through to their end.
import { loadSource } from "../../scripts/load-source.mjs";
import { alternate } from "../rounds.mjs";
import { Broken } from "../sample.mjs";

const SOURCE = `
export { apply } from "./src/core/apply.ts";
export { createState } from "./src/core/state.ts";
export { buildRun } from "./src/config/build-run.ts";
export { readRunBody } from "./src/config/run-file.ts";
export { createScheduler } from "./src/scheduler/scheduler.ts";
export { FRACTION } from "./src/core/resources.ts";
`;

const AT = 1_700_000_000_000;
const GIB = 2 ** 30;
/** What a node has today. */
const NODE = { cpus: 128, mem: 512 * GIB };

/** Shapes that do not fit together: no two ask for the same, none divides a node evenly. */
const documentOf = (shapes, perShape) => ({
  name: "scheduler",
  cwd: "/",
  environment: {},
  tasks: Array.from({ length: shapes }, (_, i) => ({
    name: `s${i}`,
    run: ["/bin/true"],
    each: { array: `1-${perShape}` },
    cpus: 1 + (i % 7),
    mem: `${1024 + i * 37}M`,
  })),
});

/** One group whose tasks ask for memory of their own, 1 to 8 GiB in any order. */
const ownDocument = (tasks) => ({
  name: "scheduler",
  cwd: "/",
  environment: {},
  tasks: [{ name: "own", run: ["/bin/true"], each: { array: `1-${tasks}` }, cpus: 1, mem: "{item}K" }],
});

/** `own` different amounts. */
function* ownItems(tasks, own) {
  const step = Math.floor((7 * 2 ** 20) / own);
  for (let i = 0; i < tasks; i++) yield String(2 ** 20 + ((i * 7919) % own) * step);
}

/** Submits the tasks of a case. */
const submit = (core, commit, { shapes, tasks, own }) => {
  const body = own === undefined ? documentOf(shapes, tasks / shapes) : ownDocument(tasks);
  const { spec } = core.buildRun(core.readRunBody(body), { limit: tasks });
  if (own === undefined) commit({ type: "run.opened", at: AT, run: 1, uuid: "u", spec });
  else {
    const groups = spec.groups.map((group) => ({ ...group, items: { kind: "list", count: 0 } }));
    commit({ type: "run.opened", at: AT, run: 1, uuid: "u", spec: { ...spec, groups } });
    commit({ type: "run.items", run: 1, group: 0, json: false, items: [...ownItems(tasks, own)] });
  }
  commit({ type: "run.committed", at: AT, run: 1 });
};

/** Results of these rows of a run, all of them done. */
const ended = (agent, seq, run, rows) => ({
  type: "tasks.ended",
  at: AT + 60_000,
  agent,
  seq,
  parts: [
    {
      run,
      rows: Uint32Array.from(rows),
      attempt: new Uint16Array(rows.length).fill(1),
      ending: new Uint8Array(rows.length),
      code: new Int16Array(rows.length),
      started: new Float64Array(rows.length).fill(AT),
      finished: new Float64Array(rows.length).fill(AT + 60_000),
      outAt: new Float64Array(rows.length).fill(-1),
      outBytes: new Float64Array(rows.length),
      errBytes: new Float64Array(rows.length),
      details: [],
    },
  ],
});

/** Adds up the time of what is called through it. */
const stopwatch = () => {
  let ms = 0;
  return {
    time: (work) => {
      const begun = performance.now();
      const result = work();
      ms += performance.now() - begun;
      return result;
    },
    get ms() {
      return ms;
    },
  };
};

/** Every task placed, ended and its slot filled again; agents report in turn, a tenth of them between two passes. */
const runCase = (core, { agents, tasks, ...rest }) => {
  const state = core.createState(5);
  const scheduler = core.createScheduler();
  const clock = stopwatch();
  const nothing = () => undefined;
  const effects = new Proxy(
    {
      ready: (run, from, count) => clock.time(() => scheduler.ready(run, from, count)),
      left: (run, row, agent) => clock.time(() => scheduler.left(run, row, agent)),
      finished: (run) => clock.time(() => scheduler.dropRun(run)),
    },
    { get: (known, name) => known[name] ?? nothing },
  );
  const commit = (event) => core.apply(state, event, effects);
  const resources = { cpus: NODE.cpus * core.FRACTION, mem: NODE.mem };
  for (let id = 1; id <= agents; id++) {
    const uuid = `agent-${id}`;
    commit({
      type: "agent.joined",
      at: AT,
      agent: id,
      uuid,
      pilot: 1,
      host: "n",
      version: "0",
      resources,
      output: "",
      seq: 0,
    });
    scheduler.addAgent({ id, pilot: 1, host: "n", resources, cluster: "c", queue: "q", endsAt: Infinity });
  }
  submit(core, commit, { tasks, ...rest });
  const run = state.runs.get(1);
  const held = Array.from({ length: agents + 1 }, () => []);
  const seqs = new Uint32Array(agents + 1);
  let [first, passes, longest, at, done] = [undefined, 0, 0, 0, 0];
  while (done < tasks) {
    const before = clock.ms;
    const placed = clock.time(() => scheduler.pass(AT));
    const took = clock.ms - before;
    first ??= took;
    longest = Math.max(longest, took);
    passes++;
    for (const { agent, parts } of placed) {
      commit({ type: "tasks.assigned", at: AT, agent, parts });
      for (const { ranges } of parts)
        for (let i = 0; i < ranges.length; i += 2)
          for (let row = ranges[i]; row < ranges[i] + ranges[i + 1]; row++) held[agent].push(row);
    }
    let any = placed.length > 0;
    for (let n = Math.ceil(agents / 10); n > 0; n--) {
      at = (at % agents) + 1;
      const rows = held[at];
      if (rows.length === 0) continue;
      held[at] = [];
      commit(
        ended(
          at,
          ++seqs[at],
          1,
          rows.toSorted((a, b) => a - b),
        ),
      );
      done += rows.length;
      any = true;
    }
    if (!any && held.every((rows) => rows.length === 0)) break;
  }
  if (done !== tasks || run.finished === 0) throw new Broken(`${done} of ${tasks} tasks were placed and ended`);
  return { first, longest, perTask: (clock.ms * 1000) / tasks, passes };
};

/** Cases that are compared by the time of a task. */
const OWN = [
  { name: "scheduler-own", agents: 1000, own: 1_000_000, tasks: 1_000_000, label: "each its own memory" },
  { name: "scheduler-100", agents: 1000, own: 100, tasks: 1_000_000, label: "100 different amounts" },
];

const CASES = [
  { name: "scheduler", agents: 20, shapes: 60, tasks: 60 * 120, wanted: [{ atMost: 10 }] },
  { name: "scheduler-large", agents: 1000, shapes: 1000, tasks: 1_000_000, wanted: [] },
];

export const measureScheduler = async (options, say) => {
  const core = await loadSource(SOURCE);
  const named = (value) => value.toLocaleString("en");
  const sized = (each) => {
    const tasks = Math.min(each.tasks, options.sized(1_000_000, 100_000, 20_000));
    return { ...each, tasks, ...(each.own === undefined ? {} : { own: Math.min(each.own, tasks) }) };
  };
  const cases = CASES.map(sized);
  const [own, few] = OWN.map(sized);
  // compiled before timing, as in a server that has been up for a while
  for (let i = 0; i < 5; i++) runCase(core, cases[0]);
  for (const each of [own, few]) runCase(core, { ...each, tasks: 10_000, own: Math.min(each.own, 10_000) });
  const contenders = [...cases, own, few].map((each) => ({
    key: each.name,
    label: `${each.agents} agents × ${each.label ?? `${each.shapes} shapes`}, ${named(each.tasks)} tasks`,
    text: ({ first, longest, perTask, passes }) =>
      `${first.toFixed(1)} ms the first pass, ${longest.toFixed(1)} the longest of ${passes}; ${perTask.toFixed(2)} µs a task`,
    measure: async () => runCase(core, each),
  }));
  const { values } = await alternate(contenders, options.rounds, say);
  const pick = (name, key) => values.get(name).map((value) => value[key]);
  const passes = cases.map(({ name, agents, shapes, tasks, wanted }) => ({
    name,
    title: `the scheduler alone: a pass over ${named(agents)} agents × ${named(shapes)} shapes, ${named(tasks)} tasks waiting`,
    unit: "ms",
    better: "less",
    ours: pick(name, "first"),
    others: [
      { key: "longest", role: "part", label: "the longest pass until all have ended", values: pick(name, "longest") },
      { key: "per-task", role: "part", label: "µs a task, until all have ended", values: pick(name, "perTask") },
    ],
    skipped: {},
    wanted,
  }));
  return [
    ...passes,
    {
      name: own.name,
      title: `the scheduler alone: ${named(own.tasks)} tasks that each ask for memory of their own, until all have ended`,
      unit: "µs a task",
      better: "less",
      ours: pick(own.name, "perTask"),
      others: [{ key: few.name, role: "limit", label: few.label, values: pick(few.name, "perTask") }],
      skipped: {},
      wanted: [{ of: few.name, atMost: 1.2 }],
    },
  ];
};
