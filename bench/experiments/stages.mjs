// Claim: tasks that wait item by item cost hardly more than stages behind barriers, and their arrays stay ranges. Five stages of
// null tasks; each round has its own servers, since a process rarely gives memory back.
import { memoryOf } from "../cpu-time.mjs";
import { secondsInside } from "../null-run.mjs";
import { alternate } from "../rounds.mjs";
import { checkRun } from "../sample.mjs";
import { cpuNow, cpuPerTask, openSlipway } from "../slipway.mjs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const STAGES = 5;

const fileOf = (count, condition) => `name: stages
defaults: { executor: "null" }
tasks:
${Array.from(
  { length: STAGES },
  (_, i) =>
    `  - { name: s${i}, run: /bin/true, each: { array: 1-${count} }${i === 0 ? "" : `, after: { s${i - 1}: ${condition} }`} }\n`,
).join("")}`;

const measureOnce = async (options, file, tasks) => {
  const slipway = await openSlipway(options);
  try {
    // the pilot is there, and the code is warm
    await slipway.ask("run", "--executor", "null", "--array", "1-2000", "--", "/bin/true");
    const processes = await slipway.processes();
    const before = cpuNow(processes);
    const { answer: run } = await slipway.ask("run", file);
    const cpu = cpuPerTask(before, cpuNow(processes), tasks);
    checkRun(run, tasks);
    return { cost: (secondsInside(run) * 1e6) / tasks, cpu, megabytes: memoryOf(slipway.server).peak };
  } finally {
    await slipway.close();
  }
};

export const measureStages = async (options, say) => {
  const count = options.sized(1_000_000, 100_000, 200);
  const tasks = STAGES * count;
  const directory = await mkdtemp(join(tmpdir(), "slipway-stages-"));
  try {
    const contenders = [];
    for (const [key, condition, label] of [
      ["items", "same", "item by item"],
      ["barriers", "ok", "behind barriers"],
    ]) {
      const file = join(directory, `${key}.yaml`);
      await writeFile(file, fileOf(count, condition));
      contenders.push({
        key,
        label,
        text: ({ cost, cpu, megabytes }) =>
          `${cost.toFixed(2)} µs a task, the server's CPU ${cpu.server.toFixed(2)}, at most ${megabytes.toFixed(0)} MB`,
        measure: () => measureOnce(options, file, tasks),
      });
    }
    const { values } = await alternate(contenders, options.rounds, say);
    const pick = (key, of) => values.get(key).map(of);
    const named = `${STAGES} stages of ${count.toLocaleString("en")} null tasks, item by item`;
    const barriers = (of) => [
      { key: "barriers", role: "part", label: "the same behind barriers", values: pick("barriers", of) },
    ];
    const result = (name, title, unit, of, others, wanted) => ({
      name,
      title,
      unit,
      better: "less",
      ours: pick("items", of),
      others,
      skipped: {},
      wanted,
    });
    return [
      result(
        "stages",
        named,
        "µs/task",
        ({ cost }) => cost,
        barriers(({ cost }) => cost),
        [{ of: "barriers", atMost: 1.3 }],
      ),
      result(
        "stages-cpu",
        `${named}: the server's CPU time`,
        "µs/task",
        ({ cpu }) => cpu.server,
        barriers(({ cpu }) => cpu.server),
        [],
      ),
      result(
        "stages-memory",
        `${named}: the server's memory at most`,
        "MB",
        ({ megabytes }) => megabytes,
        barriers(({ megabytes }) => megabytes),
        [{ atMost: 400 }],
      ),
    ];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};
