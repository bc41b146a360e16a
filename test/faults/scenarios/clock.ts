import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../until.ts";
import { signal, untilDead } from "../processes.ts";
import type { Tools } from "../tools.ts";
import { type Scenario, expect, fleetOf } from "./scenario.ts";

/** Rule 10: leases, limits and delays do not follow the wall clock. */

const HOUR = 3600;

/** Whether the shim shifts Node's clock here (it could not in a static build). */
const moves = ({ clockShim }: Tools): boolean => {
  if (clockShim === undefined) return false;
  const read = (env: Record<string, string>): number =>
    Number(spawnSync(process.execPath, ["-p", "Date.now()"], { env: { ...process.env, ...env } }).stdout.toString());
  const file = `${clockShim}.offset`;
  spawnSync("sh", ["-c", `echo ${HOUR} > '${file}'`]);
  return read({ LD_PRELOAD: clockShim, SHIM_CLOCK: file }) - Date.now() > (HOUR - 60) * 1000;
};

export const clockScenarios: readonly Scenario[] = [
  {
    name: "the clock steps an hour forward and back, under running tasks and between two servers",
    absent: (tools) => (moves(tools) ? undefined : "no shim moves the clock here (needs a C compiler)"),
    run: async (stage) => {
      const offset = `${stage.tools.clockShim}.steps`;
      await writeFile(offset, "0");
      const env = { LD_PRELOAD: stage.tools.clockShim!, SHIM_CLOCK: offset };
      const play = await stage.open({ clusters: fleetOf(2), env });
      const { world } = play;
      const step = async (seconds: number): Promise<void> => {
        await writeFile(offset, String(seconds));
        world.note(`the clock is off by ${seconds} s`);
      };
      await world.up();
      // forward and back under work that has limits and delays
      await play.submit({ tasks: 120, ms: 30, every: 6, times: 1, retries: 1, retryDelay: 1, timeLimit: 60 });
      for (const seconds of [HOUR, -HOUR, 0]) {
        const from = await world.executions();
        await step(seconds);
        await until("the work to go on", async () => (await world.executions()) > Math.min(from + 10, 119));
      }
      await play.settle();
      // back between two servers, while tasks wait for their next attempt
      await step(HOUR);
      const from = await world.executions();
      await play.submit({ tasks: 20, every: 1, times: 1, retries: 1, retryDelay: 2 });
      await until("first attempts", async () => (await world.executions()) >= from + 20);
      await world.killServer();
      await step(-HOUR);
      await world.up();
      await play.settle();
      // back between the intent to start a pilot and the next server
      const jobs = join(world.home, "jobs");
      await step(HOUR);
      const known = readdirSync(jobs).length;
      for (const agent of world.agents()) {
        world.willEnd(agent);
        signal(agent.pid, "SIGKILL");
        await untilDead(agent.pid);
      }
      await until("the directory of a job", () => existsSync(jobs) && readdirSync(jobs).length > known);
      await world.killServer();
      await step(-HOUR);
      await world.up();
      await play.submit({ tasks: 20 });
      await play.settle();
      // forward between two servers
      await play.submit({ tasks: 60, ms: 20 });
      await world.killServer();
      await step(2 * HOUR);
      await world.up();
      await play.settle();
      for (const run of await world.client.runs())
        expect(run.losses === 0 || run.id > 2, `run ${run.id}: ${run.losses} losses`);
      await step(0);
    },
  },
];
