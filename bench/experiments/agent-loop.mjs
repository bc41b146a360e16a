// Claim: one agent keeps a node with 128 cores busy. The whole of Slipway, with a spawner that starts nothing and reports
// each task ended at once (agents/instant-spawner.c): what remains is the agent, on 64 and on 128 slots. Its event loop is
// its main thread.
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compilerHere, NO_COMPILER } from "../limits.mjs";
import { execute } from "../commands.mjs";
import { mainThreadOf } from "../cpu-time.mjs";
import { secondsInside } from "../null-run.mjs";
import { alternate, Skipped } from "../rounds.mjs";
import { checkRun, checkSample } from "../sample.mjs";
import { cpuNow, cpuPerTask, openSlipway, root } from "../slipway.mjs";
import { summary } from "../statistics.mjs";

const SLOTS = [64, 128];

const numberIn = async (file, pattern) =>
  pattern.exec(await readFile(join(root, "src/agent/spawner", file), "utf8"))[1];

/** This installation, with another spawner. */
const installInstant = async () => {
  const compiler = compilerHere();
  if (compiler === undefined) throw new Skipped(NO_COMPILER);
  const directory = await mkdtemp(join(tmpdir(), "slipway-instant-"));
  for (const name of ["bin", "dist", "package.json"])
    await cp(join(root, name), join(directory, name), { recursive: true });
  const protocol = await numberIn("protocol.ts", /VERSION = (\d+)/);
  const bytes = await numberIn("events.ts", /EXIT_BYTES = (\d+)/);
  const source = join(root, "bench", "agents", "instant-spawner.c");
  const spawner = join(directory, "dist", "slipway-spawner");
  await rm(spawner, { force: true });
  await execute(compiler, ["-O2", `-DPROTOCOL=${protocol}`, `-DEXIT_BYTES=${bytes}`, "-o", spawner, source]);
  return directory;
};

const contender = (slipway, slots, count) => ({
  key: slots,
  label: `${slots} slots`,
  text: ({ rate, loop }) => `${Math.round(rate)} tasks/s, ${loop.toFixed(1)} µs of the agent's loop each`,
  measure: async () => {
    await slipway.ask("run", "--array", `1-${Math.min(count, 20_000)}`, "--", "/bin/true");
    const processes = await slipway.processes();
    const [before, loop] = [cpuNow(processes), mainThreadOf(processes.agent)];
    const { answer: run } = await slipway.ask("run", "--array", `1-${count}`, "--", "/bin/true");
    const used = (mainThreadOf(processes.agent) - loop) / count;
    const cpu = cpuPerTask(before, cpuNow(processes), count);
    checkRun(run, count);
    await checkSample(slipway, run, { size: 2 });
    return { rate: count / secondsInside(run), loop: used, cpu };
  },
});

export const measureAgentLoop = async (options, say) => {
  const count = options.sized(100_000, 20_000, 50);
  const from = await installInstant();
  const open = [];
  try {
    const contenders = [];
    for (const slots of SLOTS) {
      const clusters = `clusters: { local: { type: local, resources: { cpus: ${slots} } } }\n`;
      open.push(await openSlipway({ ...options, clusters, from }));
      contenders.push(contender(open.at(-1), slots, count));
    }
    const { values, skipped } = await alternate(contenders, options.rounds, say);
    return SLOTS.flatMap((slots) => {
      const found = values.get(slots);
      const of = `${count.toLocaleString("en")} tasks that end at once in ${slots} slots`;
      const cpu = Object.fromEntries(
        ["server", "agent"].map((key) => [key, summary(found.map((value) => value.cpu[key]))]),
      );
      return [
        {
          name: `agent-rate-${slots}`,
          title: `${of}: tasks through one agent`,
          unit: "tasks/s",
          better: "more",
          ours: found.map(({ rate }) => rate),
          others: [],
          wanted: [{ atLeast: 50_000 }],
          skipped,
          cpu,
        },
        {
          name: `agent-loop-${slots}`,
          title: `${of}: time of the agent's event loop`,
          unit: "µs a task",
          better: "less",
          ours: found.map(({ loop }) => loop),
          others: [],
          wanted: [{ atMost: 18 }],
          skipped: {},
        },
      ];
    });
  } finally {
    for (const slipway of open) await slipway.close();
    await rm(from, { recursive: true, force: true });
  }
};
