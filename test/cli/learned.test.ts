import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunView, TaskView, WhyView } from "../../src/api/schemas.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
});

afterEach(() => slipway.cleanup());

const killServer = async (): Promise<void> => {
  const { pid } = (await readEndpoint(slipway.home))!;
  process.kill(pid, "SIGKILL");
  await until("the server is gone", async () =>
    /^$|\) [ZX] /.test(await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "")),
  );
};

/** Ends at once, or hangs if there is a file `hold`. */
const TASK = ["--", "sh", "-c", "test ! -e hold || exec sleep 600"];

/** What `why` says of the task while it runs. */
const whyRunning = async (): Promise<string> => {
  const { run } = await slipway.json<{ run: number }>(["submit", ...TASK]);
  await until("it runs", async () => {
    const { state } = await slipway.json<TaskView>(["show", `${run}.0`]);
    return state === "AGENT_EXECUTING";
  });
  const { detail } = await slipway.json<WhyView>(["why", `${run}.0`]);
  await slipway.run(["cancel", String(run)]);
  return detail;
};

describe("what was learned", () => {
  it("row 001-10: is known after a crash and after a stop; a file that cannot be read is set aside with a warning", async () => {
    await slipway.run(["up"]);
    expect((await slipway.run(["run", ...TASK])).status).toBe(0);
    await killServer();
    await slipway.run(["up"]);
    await writeFile(join(slipway.cwd, "hold"), "");
    expect(await whyRunning()).toMatch(/it took .*s the last time it succeeded/);
    await slipway.run(["down", "--now"]);
    await access(join(slipway.home, "learned.bin"));
    await slipway.run(["up"]);
    expect(await whyRunning()).toMatch(/it took .*s the last time it succeeded/);
    await slipway.run(["down", "--now"]);
    await writeFile(join(slipway.home, "learned.bin"), "not what it should be");
    expect((await slipway.run(["up"])).status).toBe(0);
    expect(await readFile(join(slipway.home, "logs", "server.log"), "utf8")).toMatch(
      /what was learned could not be read .* it is not Slipway's/,
    );
    await access(join(slipway.home, "learned.bin.unreadable"));
    await slipway.run(["down"]);
  });

  it("row 001-65: tells when each run ends, as a date, in show, list and for other programs", async () => {
    await slipway.run(["up"]);
    expect((await slipway.run(["run", "--array", "1-12", ...TASK])).status).toBe(0);
    await writeFile(join(slipway.cwd, "hold"), "");
    const { run } = await slipway.json<{ run: number }>(["submit", "--array", "1-12", ...TASK]);
    const { etaRange, eta } = await until("its end to be known", async () => {
      const view = await slipway.json<RunView>(["show", String(run)]);
      return view.etaRange === null ? undefined : view;
    });
    const { p10, p50, p90 } = etaRange!;
    for (const date of [p10, p50, p90]) expect(new Date(date).toISOString()).toBe(date);
    expect(p10 <= p50 && p50 <= p90).toBe(true);
    expect(eta).toBeGreaterThanOrEqual(0);
    // tasks that take a moment, by what the server knows: not tomorrow
    expect(Math.abs(Date.parse(p50) - Date.now())).toBeLessThan(3_600_000);
    expect((await slipway.run(["show", String(run)])).stdout).toMatch(/to go .* until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/);
    const [first] = await slipway.json<RunView[]>(["list"]);
    expect(first).toMatchObject({ id: run, etaRange: { p50: expect.any(String) } });
    await slipway.run(["cancel", String(run)]);
  });

  it("mem: auto: the first tasks of an unknown template go alone, also across a crash, and the others after them", async () => {
    await mkdir(slipway.home);
    const resources = "{ cpus: 16, mem: 8G }";
    await writeFile(join(slipway.home, "clusters.yaml"), `clusters: { local: { resources: ${resources} } }\n`);
    await slipway.run(["up"]);
    const gate = createGate(slipway.cwd);
    const submit = ["submit", "--array", "1-40", "--mem", "auto", "--", ...gate.command];
    const { run } = await slipway.json<{ run: number }>(submit);
    await gate.arrived(8);
    const why = (): Promise<WhyView> => slipway.json<WhyView>(["why", `${run}.40`]);
    expect(await why()).toMatchObject({ cause: "first-tasks" });
    await killServer();
    await slipway.run(["up"]);
    expect(await why()).toMatchObject({ cause: "first-tasks" });
    expect(await gate.arrived(8)).toHaveLength(8);
    gate.open();
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    expect(await gate.arrived(40)).toHaveLength(40);
    // now it is known: nobody waits for anybody
    const { run: next } = await slipway.json<{ run: number }>(submit);
    expect((await slipway.run(["wait", String(next)])).status).toBe(0);
    expect((await slipway.json<RunView>(["show", String(next)])).counts).toEqual({ DONE: 40 });
  });
});
