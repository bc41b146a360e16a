// Claim: a million tasks fit into the server's memory, waiting, running or finished, and submitting them takes seconds.
// They wait behind a task that sleeps, or light agents have begun and hold them; each round has its own servers, since
// a process rarely gives memory back.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { memoryOf } from "../cpu-time.mjs";
import { alternate } from "../rounds.mjs";
import { NO_FLEET, startLightAgents } from "../light-agents.mjs";
import { Broken, checkSample } from "../sample.mjs";
import { connectTo } from "../sdk.mjs";
import { openSlipway } from "../slipway.mjs";

const SAMPLE = 4;
const MOST_LOOKS = 100;

const runFile = (each) => `tasks:
  - { name: first, run: sleep 1000 }
  - name: many
    each: ${each}
    after: first
    run: [/bin/true, "{item}"]
`;

/** Nothing to wait for but a free core. */
const readyFile = (count) => `tasks:
  - { name: many, each: { array: 1-${count} }, run: [sleep, "{item}000"] }
`;
/** The first of these run or are already with the agent. */
const aheadOf = (count) => Math.min(10_000, Math.floor(count / 2));
/** What a light agent runs at once; it holds twice as many more in advance. */
const SLOTS = 1024;

/** Tasks drawn at random: they must be waiting, each with its own item. */
const checkWaiting = async (slipway, id, count, itemOf) => {
  for (let i = 0; i < SAMPLE; i++) {
    const index = aheadOf(count) + 1 + Math.floor(Math.random() * (count - aheadOf(count)));
    const { answer } = await slipway.ask("show", `${id}.${index}`);
    const [, item] = answer.command;
    if (answer.state === "DONE" || answer.attempts.length > 0 || item !== itemOf(index))
      throw new Broken(`task ${answer.id} is ${answer.state} with item ${item}, not waiting with ${itemOf(index)}`);
  }
};

const checkCanceled = async (slipway, id) => {
  await slipway.ask("cancel", String(id));
  // Its exit status says that tasks were cancelled, as they should be.
  await slipway.ask("wait", String(id)).catch(() => undefined);
  const { answer: run } = await slipway.ask("show", String(id));
  if (run.counts.CANCELED !== run.total)
    throw new Broken(`after cancelling, run ${id} of ${run.total} tasks has ${JSON.stringify(run.counts)}`);
};

/** Waits until a task runs: agents have connected, and everything that can be handed out has been. */
const untilExecuting = async (slipway, id) => {
  for (let look = 0; look < MOST_LOOKS; look++) {
    const { answer } = await slipway.ask("show", String(id));
    if ((answer.counts.AGENT_EXECUTING ?? 0) > 0) return;
  }
  throw new Broken(`no task of run ${id} was started`);
};

const measureOnce = async (options, file, count, itemOf) => {
  const slipway = await openSlipway(options);
  try {
    const empty = memoryOf(slipway.server).now;
    const { answer, seconds } = await slipway.ask("submit", file);
    await untilExecuting(slipway, answer.run);
    const { now, peak } = memoryOf(slipway.server);
    await checkWaiting(slipway, answer.run, count, itemOf);
    await checkCanceled(slipway, answer.run);
    return { megabytes: now, peak, empty, seconds };
  } finally {
    await slipway.close();
  }
};

/** All of them begun by light agents; then all of them finished; then compacted. */
const measureRunning = async (options, count) => {
  const slipway = await openSlipway({ ...options, clusters: NO_FLEET });
  try {
    const client = await connectTo(slipway);
    const empty = memoryOf(slipway.server).now;
    const agents = await startLightAgents(slipway, Math.ceil(count / (2 * SLOTS)) + 1, { cpus: SLOTS, mode: "hold" });
    const { answer } = await slipway.ask("submit", "--array", `1-${count}`, "--", "/bin/true");
    const until = async (state) => {
      for (let look = 0; look < MOST_LOOKS * 6; look++) {
        if ((await client.run(answer.run)).counts[state] === count) return;
        await sleep(100);
      }
      throw new Broken(`not all tasks of run ${answer.run} became ${state}`);
    };
    await until("AGENT_EXECUTING");
    const running = memoryOf(slipway.server).now;
    await agents.finish();
    await until("DONE");
    const finished = memoryOf(slipway.server).now;
    await checkSample(slipway, await client.run(answer.run), { executed: false });
    await slipway.run(["journal", "compact"]);
    client.close();
    return { empty, running, finished, compacted: memoryOf(slipway.server).now };
  } finally {
    await slipway.close();
  }
};

export const measureMemory = async (options, say) => {
  const count = options.sized(1_000_000, 100_000, 2000);
  const directory = await mkdtemp(join(tmpdir(), "slipway-memory-"));
  const line = (index) => `sample-${String(index).padStart(7, "0")}.dat`;
  try {
    const files = Object.fromEntries(
      ["array", "lines", "ready"].map((name) => [name, join(directory, `${name}.yaml`)]),
    );
    const list = join(directory, "items.txt");
    await writeFile(list, Array.from({ length: count }, (_, i) => `${line(i + 1)}\n`).join(""));
    await writeFile(files.array, runFile(`{ array: 1-${count} }`));
    await writeFile(files.ready, readyFile(count));
    await writeFile(files.lines, runFile(`{ lines: ${JSON.stringify(list)} }`));
    const text = ({ megabytes, empty, seconds }) =>
      `${megabytes.toFixed(0)} MB (${empty.toFixed(0)} before), submitted in ${seconds.toFixed(2)} s`;
    const contenders = [
      { key: "array", label: "array", text, measure: () => measureOnce(options, files.array, count, String) },
      { key: "lines", label: "lines of a file", text, measure: () => measureOnce(options, files.lines, count, line) },
      {
        key: "ready",
        label: "array, ready",
        text,
        measure: () => measureOnce(options, files.ready, count, (index) => `${index}000`),
      },
    ];
    contenders.push({
      key: "running",
      label: "running and finished",
      text: ({ running, finished, compacted }) =>
        `${running.toFixed(0)} MB running, ${finished.toFixed(0)} finished, ${compacted.toFixed(0)} put away`,
      measure: () => measureRunning(options, count),
    });
    const { values } = await alternate(contenders, options.rounds, say);
    const pick = (key, what) => values.get(key).map((value) => value[what]);
    const named = count.toLocaleString("en");
    return [
      {
        name: "memory",
        title: `the server's memory with ${named} waiting array tasks`,
        unit: "MB",
        better: "less",
        limit: "empty",
        ours: pick("array", "megabytes"),
        others: [
          { key: "empty", role: "limit", label: "before they were submitted", values: pick("array", "empty") },
          { key: "peak", role: "part", label: "at its highest", values: pick("array", "peak") },
          { key: "ready", role: "part", label: "ready, waiting for a core only", values: pick("ready", "megabytes") },
          {
            key: "lines",
            role: "part",
            label: "with an item of 18 bytes each, from a file",
            values: pick("lines", "megabytes"),
          },
          { key: "lines-peak", role: "part", label: "the same at its highest", values: pick("lines", "peak") },
        ],
        skipped: {},
        wanted: [{ atMost: 400 }],
      },
      {
        name: "memory-running",
        title: `the server's memory with ${named} running tasks, on as many connected agents as that takes`,
        unit: "MB",
        better: "less",
        limit: "empty",
        ours: pick("running", "running"),
        others: [
          { key: "empty", role: "limit", label: "before they were submitted", values: pick("running", "empty") },
          { key: "finished", role: "part", label: "when all have finished", values: pick("running", "finished") },
          {
            key: "compacted",
            role: "part",
            label: "when those are put away on disk",
            values: pick("running", "compacted"),
          },
        ],
        skipped: {},
        wanted: [],
      },
      {
        name: "submit",
        title: `slipway submit of ${named} array tasks, until it returns: they are on disk`,
        unit: "s",
        better: "less",
        ours: pick("array", "seconds"),
        others: [{ key: "lines", role: "part", label: "as lines of a file", values: pick("lines", "seconds") }],
        skipped: {},
        wanted: [{ atMost: 10 }],
      },
    ];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};
