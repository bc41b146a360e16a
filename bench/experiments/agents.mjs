// Claim: a server has room for thousands of agents, and all are back soon after it was killed and started again. The agents
// are the agent's own connections over TLS, hundreds to a process (agents/staying-agents.mjs), which share this machine's
// cores with the server.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { environment } from "../commands.mjs";
import { cpuOf, memoryOf } from "../cpu-time.mjs";
import { NO_FLEET } from "../light-agents.mjs";
import { Broken } from "../sample.mjs";
import { openSlipway, root } from "../slipway.mjs";

const PER_PROCESS = 500;

const startStaying = (home, count) => {
  const words = [join(root, "bench", "agents", "staying-agents.mjs"), home, String(count)];
  const child = spawn(process.execPath, words, { env: environment, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pid: child.pid,
    /** Resolves when all of them are welcome, the first time or again. */
    all: async () => {
      if ((await lines.next()).value !== "all") throw new Broken("agents that should stay have ended");
    },
    close: async () => {
      child.stdin.end();
      if (child.exitCode === null) await once(child, "exit");
    },
  };
};

export const measureAgents = async (options, say) => {
  const count = options.sized(10_000, 1000, 20);
  const slipway = await openSlipway({ ...options, clusters: NO_FLEET });
  const processes = [];
  try {
    const before = memoryOf(slipway.server).now;
    for (let left = count; left > 0; left -= PER_PROCESS) {
      processes.push(startStaying(slipway.home, Math.min(left, PER_PROCESS)));
      // one process after the other: how they come the first time is not what is measured
      await processes.at(-1).all();
    }
    // a server that gives back memory meanwhile may have less than before, if they are few
    const kilobytes = Math.max(0, ((memoryOf(slipway.server).now - before) * 1e6) / 1024 / count);
    say(`${count} agents, ${kilobytes.toFixed(1)} KB of the server each`);
    const back = [];
    const cpu = [];
    for (let round = 0; round < Math.min(options.rounds, 3); round++) {
      const again = Promise.all(processes.map((each) => each.all()));
      const used = processes.reduce((sum, { pid }) => sum + cpuOf(pid).own, 0);
      await slipway.kill();
      const begun = performance.now();
      await slipway.restart();
      await again;
      back.push((performance.now() - begun) / 1000);
      const agents = processes.reduce((sum, { pid }) => sum + cpuOf(pid).own, 0) - used;
      cpu.push((cpuOf(slipway.server).own + agents) / 1000);
      say(
        `round ${round + 1}: all back after ${back.at(-1).toFixed(1)} s, ${cpu.at(-1).toFixed(1)} s of CPU, both ends`,
      );
    }
    const named = count.toLocaleString("en");
    return [
      {
        name: "agents-memory",
        title: `memory of the server for each of ${named} connected agents`,
        unit: "KB",
        better: "less",
        ours: [kilobytes],
        others: [],
        wanted: [{ atMost: 64 }],
        skipped: {},
      },
      {
        name: "agents-back",
        title: `from the start of a server after kill -9 until all of ${named} agents are welcome again`,
        unit: "s",
        better: "less",
        ours: back,
        others: [{ key: "cpu", role: "part", label: "seconds of CPU, both ends and the server's start", values: cpu }],
        wanted: [{ atMost: 30 }],
        skipped: {},
      },
    ];
  } finally {
    await Promise.all(processes.map((each) => each.close()));
    await slipway.close();
  }
};
