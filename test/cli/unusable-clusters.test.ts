import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, StatusView, TaskView, WhyView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { createHome, type Outcome, type SlipwayHome } from "./slipway-process.ts";

/** Clusters whose manager is not here: their tasks run on this machine, or wait, and somebody is told. */

let slipway: SlipwayHome;
let up: Outcome;

const clusters = (fallback: string): Promise<void> =>
  writeFile(
    join(slipway.home, "clusters.yaml"),
    `clusters:
  local: { resources: { cpus: 2, licence: 1 }, grace: 1s }
  grid: { type: sge, bin: /no/such/directory, queues: { q: {} }${fallback} }
  later: { type: slurm, bin: /no/such/directory, fallback: wait }
`,
  );

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await clusters("");
  up = await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

const submit = async (...args: string[]): Promise<number> =>
  (await slipway.json<{ run: number }>(["submit", ...args])).run;
const ON_GRID = ["--cluster", "grid", "--queue", "q"];

describe("a cluster that cannot work here", () => {
  it("row 001-22: up says so in one line, with the cause, what becomes of its tasks, and what to do", () => {
    expect(up.status).toBe(0);
    const lines = up.stderr.split("\n").filter((line) => line.startsWith("warning: cluster"));
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(
      /cluster grid cannot be used: qsub, .*: not found in \/no\/such\/directory; its tasks run on this machine\. .*`bin`/,
    );
    expect(lines[1]).toMatch(/cluster later cannot be used: sbatch, .*; its tasks wait\. /);
  });

  it("row 001-23: its tasks run on this machine; run and submit say how many, and why", async () => {
    const run = await slipway.run(["run", ...ON_GRID, "--array", "1-3", "--", "true"]);
    expect(run.status).toBe(0);
    expect(run.stderr).toMatch(/warning: 3 tasks of cluster grid run on this machine, because .*: qsub, /);
    const submitted = await slipway.run(["submit", ...ON_GRID, "--", "true"]);
    expect(submitted.stderr).toMatch(/warning: 1 task of cluster grid runs on this machine/);
    expect(await slipway.json(["submit", ...ON_GRID, "--", "true"])).toMatchObject({
      redirected: [{ cluster: "grid", tasks: 1 }],
    });
  });

  it("row 001-24: what is not here or does not fit runs alone, with what there is, also where items say it", async () => {
    const gate = createGate(slipway.cwd, "alone");
    const ordinary = await submit("--", ...gate.command);
    await gate.arrived(1);
    await writeFile(join(slipway.cwd, "sizes.json"), '[{"n": 1}, {"n": 1000}]');
    const each = ["--from-json", "sizes.json", "--cpus", "{item.n}", "--resource", "ghost=1"];
    const script = "mkdir here && echo $SLIPWAY_CPUS && rmdir here";
    const alone = await submit(...ON_GRID, ...each, "--", "sh", "-c", script);
    const why = await until("the reason", async () => {
      const said = await slipway.json<WhyView>(["why", `${alone}.1`]);
      return said.cause === "busy" ? said : undefined;
    });
    expect(why.detail).toContain("it must be alone on this machine, where 1 other task is");
    gate.open();
    expect((await slipway.run(["wait", String(ordinary), String(alone)])).status).toBe(0);
    expect((await slipway.run(["logs", `${alone}.0`])).stdout).toBe("1\n");
    expect((await slipway.run(["logs", `${alone}.1`])).stdout).toBe("2\n");
    expect((await slipway.json<TaskView>(["show", `${alone}.1`])).resources).toEqual({ cpus: 2 });
  });

  it("row 001-29: --local does the same on purpose; cluster: local only has what is there", async () => {
    const wide = ["--cpus", "1000", "--resource", "unicorn=1"];
    const { counts } = await slipway.json<RunView>(["run", "--local", ...wide, "--", "true"]);
    expect(counts).toEqual({ DONE: 1 });
    const refused = await slipway.run(["submit", "--cluster", "local", ...wide, "--", "true"]);
    expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining("asks for cpus 1000") as string });
  });

  it("a queue that clusters.yaml does not have is a mistake, not a reason", async () => {
    const { status, stderr } = await slipway.run(["submit", "--cluster", "grid", "--queue", "nope", "--", "true"]);
    expect(status).toBe(2);
    expect(stderr).toContain("cluster 'grid' has no queue 'nope'");
  });

  it("fallback: wait lets tasks wait, and why says since when", async () => {
    const waits = await submit("--cluster", "later", "--", "true");
    const why = await slipway.json<WhyView>(["why", String(waits)]);
    expect(why.cause).toBe("no-pilot");
    expect(why.detail).toMatch(/sbatch, .*: not found in .* \(so since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)/);
    await slipway.run(["cancel", String(waits)]);
  });

  it("what was sent here stays here, whatever is decided for later runs", async () => {
    const gate = createGate(slipway.cwd, "stays");
    const first = await submit(...ON_GRID, "--", ...gate.command);
    await gate.arrived(1);
    const ghost = ["--resource", "ghost=1"];
    const second = await submit(...ON_GRID, ...ghost, "--", "true");
    process.kill((await slipway.json<StatusView>(["status"])).server.pid, "SIGKILL");
    await clusters(", fallback: wait");
    await slipway.run(["up"]);
    const third = await submit(...ON_GRID, "--", "true");
    gate.open();
    expect((await slipway.run(["wait", String(first), String(second)])).status).toBe(0);
    expect((await slipway.json<WhyView>(["why", String(third)])).cause).toBe("no-pilot");
    await slipway.run(["cancel", String(third)]);
  });
});
