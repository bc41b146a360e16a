// Claim: a server is a good guest on a login node. What it uses while it does nothing, and for each of many short tasks: CPU
// time, memory, threads, bytes of journal, system calls (strace, in a run of its own, where that is installed); HyperQueue's
// server beside it where that is installed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { availableParallelism } from "node:os";
import { findProgram } from "../commands.mjs";
import { memoryOf } from "../cpu-time.mjs";
import { openHyperQueue } from "../hyperqueue.mjs";
import { Skipped } from "../rounds.mjs";
import { checkRun } from "../sample.mjs";
import { journalBytes, openSlipway } from "../slipway.mjs";

/** Milliseconds that all threads of a process have run, to the nanosecond: ticks are too coarse for a process at rest. */
const cpuMs = (pid) =>
  readdirSync(`/proc/${pid}/task`).reduce(
    (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0]) / 1e6,
    0,
  );

const threadsOf = (pid) => readdirSync(`/proc/${pid}/task`).length;

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

/** A guest is ours or another's: its pid, what it keeps on disk, and how it is given work. */
const ours = async (options, count) => {
  const slipway = await openSlipway(options);
  return {
    pid: slipway.server,
    kept: () => journalBytes(slipway),
    work: async () => {
      const { answer } = await slipway.ask("run", "--array", `1-${count}`, "--", "/bin/true");
      checkRun(answer, count);
    },
    close: slipway.close,
  };
};

const hyperQueue = async ({ dir }, count) => {
  const queue = await openHyperQueue({ dir, cpus: availableParallelism() });
  const { version, server: pid, kept, close } = queue;
  return { version, pid, kept, work: () => queue.run(count), close };
};

const measureGuest = async (guest, { count, seconds, rest, rounds }, say) => {
  const found = { cpu: [], idle: [], idleAfter: [], memory: [], threads: [], journal: [], calls: [] };
  // what a start leaves to be done is no rest
  await sleep(rest);
  for (let round = 0; round < rounds; round++) {
    found.idle.push(await idleOf(guest.pid, seconds));
    const [cpu, kept] = [cpuMs(guest.pid), await guest.kept()];
    await guest.work();
    found.cpu.push(((cpuMs(guest.pid) - cpu) * 1000) / count);
    found.journal.push(((await guest.kept()) - kept) / count);
    found.memory.push(memoryOf(guest.pid).now);
    found.threads.push(threadsOf(guest.pid));
    await sleep(1000);
    found.idleAfter.push(await idleOf(guest.pid, seconds));
    say(
      `round ${round + 1}: ${found.cpu.at(-1).toFixed(1)} µs a task, idle ${found.idle.at(-1).toFixed(3)} % of a core`,
    );
  }
  if (findProgram("strace") !== undefined) found.calls.push((await callsOf(guest.pid, guest.work)) / count);
  return found;
};

const PARTS = [
  ["journal", "bytes of journal a task"],
  ["calls", "system calls a task"],
  ["memory", "MB in memory"],
  ["threads", "threads"],
];

const part = (key, label, values) =>
  values.length === 0 || values.some((value) => !(value >= 0)) ? [] : [{ key, role: "part", label, values }];

export const measureLoginNode = async (options, say) => {
  const count = options.sized(20_000, 2000, 10);
  const seconds = options.sized(20, 5, 1);
  const how = { count, seconds, rest: options.sized(5000, 1000, 0), rounds: options.rounds };
  const skipped = findProgram("strace") === undefined ? { "system calls": "strace is not installed" } : {};
  const measured = async (open) => {
    const guest = await open(options, count);
    try {
      return { version: guest.version, found: await measureGuest(guest, how, say) };
    } finally {
      await guest.close();
    }
  };
  const { found } = await measured(ours);
  const peer = await measured(hyperQueue).catch((error) => {
    if (!(error instanceof Skipped)) throw error;
    skipped["HyperQueue"] = error.message;
  });
  const label = `HyperQueue ${peer?.version}`;
  const theirs = (what) =>
    peer === undefined ? [] : [{ key: "hyperqueue", role: "peer", label, values: peer.found[what] }];
  return [
    {
      name: "login-node",
      title: `a server on a login node: CPU time for each of ${count.toLocaleString("en")} × /bin/true`,
      unit: "µs a task",
      better: "less",
      ours: found.cpu,
      others: [
        ...theirs("cpu"),
        ...PARTS.flatMap(([key, text]) => [
          ...part(key, text, found[key]),
          ...part(`hyperqueue-${key}`, `${label}: ${text}`, peer?.found[key] ?? []),
        ]),
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
      others: [
        ...theirs("idle"),
        ...part("after", "with an idle pilot, after a run", found.idleAfter),
        ...part("hyperqueue-after", `${label}: with an idle worker, after a run`, peer?.found.idleAfter ?? []),
      ],
      wanted: [{ atMost: 0.1 }],
      skipped: {},
    },
  ];
};
