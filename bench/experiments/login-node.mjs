// Claim: a server is a good guest on a login node. What it uses while it does nothing, and for each of many short tasks: CPU
// time, memory, threads, bytes of journal, system calls (strace, in a run of its own, where that is installed).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findProgram } from "../commands.mjs";
import { memoryOf } from "../cpu-time.mjs";
import { checkRun } from "../sample.mjs";
import { openSlipway } from "../slipway.mjs";

/** Milliseconds that all threads of a process have run, to the nanosecond: ticks are too coarse for a process at rest. */
const cpuMs = (pid) =>
  readdirSync(`/proc/${pid}/task`).reduce(
    (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0]) / 1e6,
    0,
  );

const threadsOf = (pid) => readdirSync(`/proc/${pid}/task`).length;

const journalBytes = (home) =>
  readdirSync(join(home, "journal"))
    .filter((name) => !name.includes("reserve"))
    .reduce((sum, name) => sum + statSync(join(home, "journal", name)).size, 0);

/** Per cent of a core. */
const idleOf = async (pid, seconds) => {
  const before = cpuMs(pid);
  await sleep(seconds * 1000);
  return (cpuMs(pid) - before) / (seconds * 10);
};

const callsOf = async (pid, work) => {
  const tracer = spawn("strace", ["-f", "-c", "-p", String(pid)], { stdio: ["ignore", "ignore", "pipe"] });
  let text = "";
  tracer.stderr.setEncoding("utf8").on("data", (data) => (text += data));
  while (!text.includes("attached") && tracer.exitCode === null) await sleep(20);
  const exited = once(tracer, "exit");
  await work();
  tracer.kill("SIGINT");
  await exited;
  return Number(/^\s*100\.00\s.*?(\d+)\s+(?:\d+\s+)?total/m.exec(text)?.[1]);
};

export const measureLoginNode = async (options, say) => {
  const count = options.sized(20_000, 2000, 10);
  const seconds = options.sized(20, 5, 1);
  const slipway = await openSlipway(options);
  const found = { cpu: [], idle: [], idleAfter: [], memory: [], threads: [], journal: [] };
  try {
    const work = async () => {
      const { answer } = await slipway.ask("run", "--array", `1-${count}`, "--", "/bin/true");
      checkRun(answer, count);
    };
    // what a start leaves to be done is no rest
    await sleep(options.sized(5000, 1000, 0));
    for (let round = 0; round < options.rounds; round++) {
      found.idle.push(await idleOf(slipway.server, seconds));
      const [cpu, journal] = [cpuMs(slipway.server), journalBytes(slipway.home)];
      await work();
      found.cpu.push(((cpuMs(slipway.server) - cpu) * 1000) / count);
      found.journal.push((journalBytes(slipway.home) - journal) / count);
      found.memory.push(memoryOf(slipway.server).now);
      found.threads.push(threadsOf(slipway.server));
      await sleep(1000);
      found.idleAfter.push(await idleOf(slipway.server, seconds));
      say(
        `round ${round + 1}: ${found.cpu.at(-1).toFixed(1)} µs a task, idle ${found.idle.at(-1).toFixed(3)} % of a core`,
      );
    }
    const skipped = {};
    const calls = [];
    if (findProgram("strace") === undefined) skipped["system calls"] = "strace is not installed";
    else calls.push((await callsOf(slipway.server, work)) / count);
    const part = (key, label, values) =>
      values.some((value) => !(value >= 0)) ? [] : [{ key, role: "part", label, values }];
    return [
      {
        name: "login-node",
        title: `a server on a login node: CPU time for each of ${count.toLocaleString("en")} × /bin/true`,
        unit: "µs a task",
        better: "less",
        ours: found.cpu,
        others: [
          ...part("journal", "bytes of journal a task", found.journal),
          ...(calls.length > 0 ? part("calls", "system calls a task", calls) : []),
          ...part("memory", "MB in memory", found.memory),
          ...part("threads", "threads", found.threads),
        ],
        wanted: [],
        skipped,
      },
      {
        name: "login-node-idle",
        title: `the same server with nothing to do, over ${seconds} s`,
        unit: "% of a core",
        better: "less",
        ours: found.idle,
        others: part("after", "with an idle pilot, after a run", found.idleAfter),
        wanted: [{ atMost: 0.1 }],
        skipped: {},
      },
    ];
  } finally {
    await slipway.close();
  }
};
