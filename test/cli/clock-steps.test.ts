import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/index.ts";
import { type Tools, makeTools } from "../faults/tools.ts";
import { until } from "../until.ts";
import { createHome, type SlipwayHome } from "./slipway-process.ts";

/** What people read when the wall clock jumps by years under a server, its agents and the command line. */

const YEARS = 1_500_000_000;

let slipway: SlipwayHome;
let tools: Tools;

beforeEach(async () => {
  slipway = await createHome();
  tools = await makeTools();
});
afterEach(async () => {
  await slipway.cleanup();
  await tools.remove();
});

const seconds = (from: string | null, to: string | null): number => (Date.parse(to!) - Date.parse(from!)) / 1000;

/** Neither negative nor longer than this test. */
const isSane = (took: number): void => {
  expect(took).toBeGreaterThanOrEqual(0);
  expect(took).toBeLessThan(3600);
};

describe("rule 10: a wall clock that is set by years", () => {
  it("makes no duration negative or absurd, in text or in JSON, also across a restart", async (ctx) => {
    if (tools.clockShim === undefined) return ctx.skip("no C compiler");
    const offset = join(slipway.root, "offset");
    const set = (by: number): Promise<void> => writeFile(offset, String(by));
    // the server and its agents have that clock, the command line has the right one
    const env = { LD_PRELOAD: tools.clockShim, SHIM_CLOCK: offset };
    const client = connect({ home: slipway.home });
    const read = async (run: number, ...verbs: string[][]): Promise<void> => {
      for (const args of verbs) {
        const { stdout } = await slipway.run(args);
        expect(stdout).not.toMatch(/\d{3,}d |-\d+(\.\d+)? ?(ms|s|m|h|d)\b|\?/);
      }
      const { pilots } = await client.status();
      for (const { requested, active } of pilots) if (active !== null) isSane(seconds(requested, active));
      const { attempts } = await client.task(run, 0);
      for (const { assigned, started, finished } of attempts) {
        if (started !== null) isSane(seconds(assigned, started));
        if (finished !== null) isSane(seconds(started, finished));
      }
      const view = await client.run(run);
      if (view.started !== null) isSane(seconds(view.submitted, view.started));
      if (view.finished !== null) isSane(seconds(view.started, view.finished));
      isSane(view.eta ?? 0);
    };
    const begin = async (gate: string): Promise<number> => {
      const script = `until [ -e ${gate} ]; do sleep 0.05; done`;
      const document = { cwd: slipway.cwd, environment: {}, tasks: [{ run: ["/bin/sh", "-c", script] }] };
      const { run } = await client.submit(document);
      await until("the task runs", async () => ((await client.run(run)).started === null ? undefined : true));
      return run;
    };
    const finish = async (run: number, gate: string): Promise<void> => {
      await writeFile(join(slipway.cwd, gate), "");
      for await (const view of client.watch(run)) if (view.finished !== null) expect(view.state).toBe("DONE");
    };

    try {
      await set(0);
      await slipway.run(["up"], { env });
      const forward = await begin("one");
      await set(YEARS);
      await read(forward, ["status"], ["show", `${forward}.0`]);
      await finish(forward, "one");
      await read(forward, ["list"], ["show", `${forward}.0`]);

      // back, and another server while the task runs
      const back = await begin("two");
      const { server } = await client.status();
      process.kill(server.pid, "SIGKILL");
      await set(-YEARS);
      await slipway.run(["up"], { env });
      await read(back, ["show", `${back}`]);
      await finish(back, "two");
      await read(back, ["list"]);
    } finally {
      await set(0);
      client.close();
    }
  });
});
