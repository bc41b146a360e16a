// Claim: who looks at a page does not slow the work down. A run of 1,000,000 tasks of which 1,000 end each second, with and
// without 100 viewers that follow it through streams: CPU time of the server.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { environment } from "../commands.mjs";
import { NO_FLEET, startLightAgents } from "../light-agents.mjs";
import { alternate } from "../rounds.mjs";
import { Broken } from "../sample.mjs";
import { connectTo } from "../sdk.mjs";
import { openSlipway, root } from "../slipway.mjs";

/** Milliseconds that all threads of a process have run, to the nanosecond. */
const cpuMs = (pid) =>
  readdirSync(`/proc/${pid}/task`).reduce(
    (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0]) / 1e6,
    0,
  );

const openViewers = async (socket, count, run) => {
  const words = [join(root, "bench", "agents", "viewers.mjs"), socket, String(count), String(run)];
  const child = spawn(process.execPath, words, { env: environment, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = once(child, "exit");
  if ((await lines.next()).value !== "ready") throw new Broken("the viewers were not let in, or were dropped");
  return async () => {
    child.stdin.end();
    const { value } = await lines.next();
    await exited;
    if (value === undefined) throw new Broken("a viewer was dropped");
    return JSON.parse(value);
  };
};

export const measureViewers = async (options, say) => {
  const total = options.sized(1_000_000, 1_000_000, 20_000);
  const viewers = options.sized(100, 100, 5);
  const seconds = options.sized(60, 10, 2);
  const slipway = await openSlipway({ ...options, clusters: NO_FLEET });
  const client = await connectTo(slipway);
  const agents = await startLightAgents(slipway, 100, { mode: "pace" });
  try {
    const { socket } = await client.endpoint();
    const document = { name: "viewers", cwd: "/", environment: {} };
    const { run } = await client.submit({
      ...document,
      tasks: [{ name: "many", run: ["/bin/true"], each: { array: `1-${total}` } }],
    });
    await sleep(options.sized(5000, 2000, 500));
    const measured = async () => {
      const [cpu, before, since] = [cpuMs(slipway.server), await client.run(run), performance.now()];
      await sleep(seconds * 1000);
      const [took, used] = [performance.now() - since, cpuMs(slipway.server) - cpu];
      const ended = (await client.run(run)).counts.DONE - (before.counts.DONE ?? 0);
      return { points: (100 * used) / took, ends: (1000 * ended) / took };
    };
    const contenders = [
      { key: "alone", label: "nobody looks", measure: measured },
      {
        key: "watched",
        label: `${viewers} viewers`,
        measure: async () => {
          const close = await openViewers(socket, viewers, run);
          const found = await measured();
          const { frames, bytes } = await close();
          // an overview and the run each second
          if (frames < seconds) throw new Broken(`a viewer heard ${frames} things in ${seconds} s`);
          return { ...found, frames: frames / seconds, bytes: bytes / seconds };
        },
      },
    ].map((each) => ({
      ...each,
      text: ({ points, ends, frames, bytes }) =>
        `${points.toFixed(2)} % of a core, ${ends.toFixed(0)} ends/s${frames === undefined ? "" : `, ${frames.toFixed(1)} frames/s and ${(bytes / 1000).toFixed(1)} kB/s for each`}`,
    }));
    const { values } = await alternate(contenders, options.rounds, say);
    const pick = (key, what) => values.get(key).map((each) => each[what]);
    const [alone, watched] = [pick("alone", "points"), pick("watched", "points")];
    const part = (key, label, found) => ({ key, role: "part", label, values: found });
    return [
      {
        name: "viewers",
        title: `a run of ${total.toLocaleString("en")} tasks, 1,000 ends a second for ${seconds} s: what ${viewers} viewers add to the server's CPU time`,
        unit: "points",
        better: "less",
        ours: watched.map((points, i) => Math.max(0, points - alone[i])),
        others: [
          part("alone", "% of a core without viewers", alone),
          part("watched", `% of a core with ${viewers} viewers`, watched),
          part("ends", "ends a second meanwhile", pick("watched", "ends")),
          part("frames", "events a second for each viewer", pick("watched", "frames")),
        ],
        skipped: {},
        wanted: [{ atMost: 5 }],
      },
    ];
  } finally {
    await agents.close();
    client.close();
    await slipway.close();
  }
};
