// Claim: measuring the peak memory of every task costs at most 3 % of what agent and spawner do for it. Whole runs with and
// without it differ by less than two equal runs do; so what it adds is timed by itself, in many short turns, beside the CPU
// time of agent and spawner for real tasks. The kernel's account of a process comes with the call that waits for its end;
// only where cgroups are delegated a file is read.
import { existsSync } from "node:fs";
import { loadSource } from "../../scripts/load-source.mjs";
import { compileLimits } from "../limits.mjs";
import { alternate } from "../rounds.mjs";
import { checkRun } from "../sample.mjs";
import { cpuNow, cpuPerTask, openSlipway } from "../slipway.mjs";
import { median } from "../statistics.mjs";

const SOURCE = `
export { peakAtEnd } from "./src/agent/peak.ts";
export { watchMemory } from "./src/agent/memory-watch.ts";
export { createResultStore } from "./src/agent/results.ts";
`;

/** As the kernel keeps it for a cgroup; the first that is here. */
const FILES = ["/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes", "/proc/self/statm"];

const PER_MESSAGE = 1000;
const TURNS = 41;

/** CPU microseconds of a call. */
const cpuOfCall = (work) => {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
};

const NOTHING = {
  run: 1,
  attempt: 1,
  ending: 0,
  code: 0,
  started: 1,
  finished: 2,
  outAt: -1,
  outBytes: 0,
  errBytes: 0,
};

/** What an agent does with the ends of tasks, with and without their peaks. */
const ends = ({ peakAtEnd, createResultStore }, watch, tasks, measures) => {
  const store = createResultStore();
  const exit = { error: null, maxRssBytes: 0, cgroupPeakBytes: 0 };
  for (let row = 0; row < tasks; row++) {
    exit.maxRssBytes = 3_000_000 + (row % 64) * 4096;
    store.add({ ...NOTHING, row, peak: measures ? peakAtEnd({}, exit, watch.takePeak(row)) : undefined });
    if (row % PER_MESSAGE === PER_MESSAGE - 1) for (const { seq } of store.take()) store.acknowledged(seq);
  }
};

/** Microseconds that peaks add to the end of a task: the median of many turns with and without, one behind the other. */
const addedBy = (core, watch, tasks) => {
  const differences = Array.from({ length: TURNS }, (_, turn) => {
    const first = turn % 2 === 0;
    const [one, other] = [first, !first].map((measures) => cpuOfCall(() => ends(core, watch, tasks, measures)));
    return (first ? one - other : other - one) / tasks;
  });
  return Math.max(0, median(differences));
};

export const measurePeaks = async (options, say) => {
  const core = await loadSource(SOURCE);
  const count = options.sized(5000, 1000, 20);
  const turn = options.sized(10_000, 5000, 100);
  const file = FILES.find((path) => existsSync(path));
  const watch = core.watchMemory({ tasks: () => [], onExceeded: () => undefined });
  const slipway = await openSlipway(options);
  let limits;
  try {
    limits = await compileLimits();
    addedBy(core, watch, turn);
    // the pilot is up and warm
    await slipway.ask("run", "--array", `1-${Math.min(300, count)}`, "--", "/bin/true");
    const text = (value) => `${value.toFixed(2)} µs of CPU a task`;
    const contenders = [
      { key: "added", label: "peaks", text, measure: async () => addedBy(core, watch, turn) },
      {
        key: "file",
        label: `C: reading ${file}`,
        text,
        optional: !limits.available,
        measure: async () => 1e6 / (await limits.read(10 * turn, file)),
      },
      {
        key: "tasks",
        label: "agent and spawner, /bin/true",
        text,
        measure: async () => {
          const processes = await slipway.processes();
          const before = cpuNow(processes);
          const { answer } = await slipway.ask("run", "--array", `1-${count}`, "--", "/bin/true");
          const { agent, spawner } = cpuPerTask(before, cpuNow(processes), count);
          checkRun(answer, count);
          return agent + spawner;
        },
      },
    ];
    const { values, skipped } = await alternate(contenders, options.rounds, say);
    const [added, tasks, read] = ["added", "tasks", "file"].map((key) => values.get(key));
    // ticks are coarse: in a handful of tasks none may have passed
    const share = (micros) => micros.map((value, i) => (100 * value) / Math.max(tasks[i], 1));
    const part = (key, label, of) => ({ key, role: "part", label, values: of });
    const reading =
      read === undefined
        ? []
        : [
            part("cgroup", "% where cgroups are delegated: a file is read", share(added.map((v, i) => v + read[i]))),
            part("file", "µs to open, read and close such a file", read),
          ];
    return [
      {
        name: "peaks",
        title: "what measuring peak memory adds to the CPU time of agent and spawner for one /bin/true",
        unit: "%",
        better: "less",
        ours: share(added),
        others: [...reading, part("added", "µs added", added), part("tasks", "µs of agent and spawner a task", tasks)],
        wanted: [{ atMost: 3 }],
        skipped,
      },
    ];
  } finally {
    watch.stop();
    await limits?.close();
    await slipway.close();
  }
};
