// Starts processes of light agents (agents/light-agents.mjs) for a server that has no fleet.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { environment } from "./commands.mjs";
import { cpuOf } from "./cpu-time.mjs";
import { Broken } from "./sample.mjs";
import { root } from "./slipway.mjs";

/** clusters.yaml of a server that starts no pilot itself. */
export const NO_FLEET = "clusters: { local: { type: local, queues: { default: { fleet: { max: 0 } } } } }\n";

/** Agents per process. */
const PER_PROCESS = 500;

const startProcess = async (slipway, count, cpus, mode) => {
  const words = [join(root, "bench", "agents", "light-agents.mjs"), slipway.home, count, cpus, mode];
  const child = spawn(process.execPath, words.map(String), { env: environment, stdio: ["pipe", "pipe", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (said = (said + text).slice(-2000)));
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const heard = async (word) => {
    const { value } = await lines.next();
    if (value !== word) throw new Broken(`light agents did not get ${word}: ${said.trim() || "they ended"}`);
  };
  await heard("ready");
  return {
    pid: child.pid,
    /** Agents that hold their tasks end them. */
    finish: async () => {
      child.stdin.write("finish\n");
      await heard("finished");
    },
    close: async () => {
      child.stdin.end();
      await exited;
    },
  };
};

/**
 * Resolves when all are connected. They `answer` tasks at once, `hold` them as running until `finish`, or answer with
 * times and sizes that `vary`, or `pace` themselves: 1,000 tasks a second for each 500 agents.
 */
export const startLightAgents = async (slipway, count, { cpus = 4, mode = "answer" } = {}) => {
  const processes = [];
  const agents = {
    /** CPU milliseconds that all of them have used so far. */
    cpu: () => processes.reduce((sum, { pid }) => sum + cpuOf(pid).own, 0),
    finish: () => Promise.all(processes.map((each) => each.finish())),
    close: async () => {
      slipway.light.delete(agents);
      await Promise.all(processes.map((each) => each.close()));
    },
  };
  slipway.light.add(agents);
  for (let left = count; left > 0; left -= PER_PROCESS)
    processes.push(await startProcess(slipway, Math.min(left, PER_PROCESS), cpus, mode));
  return agents;
};
