import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterView, PilotView, RunView, StatusView, TaskView, WhyView } from "../../src/api/schemas.ts";
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

describe("clusters.yaml is read again", () => {
  const file = (): string => join(slipway.home, "clusters.yaml");
  const status = async (): Promise<StatusView["server"]> => (await slipway.json<StatusView>(["status"])).server;
  const write = (queues: string): Promise<void> =>
    writeFile(file(), `clusters:\n  local: { resources: { cpus: 2, licence: 1 }, grace: 1s, queues: { ${queues} } }\n`);

  it("on demand, and says what changed; a queue that tasks wait for or pilots serve cannot go", async () => {
    await write("default: {}, b: { fleet: { max: 1 } }");
    const first = await slipway.run(["clusters", "reload"]);
    expect(first).toMatchObject({ status: 0 });
    expect(first.stdout).toMatch(/cluster grid: removed/);
    expect(first.stdout).toMatch(/local\/b: added/);
    const gate = createGate(slipway.cwd, "reload");
    const run = await submit("--queue", "b", "--", ...gate.command);
    await gate.arrived(1);
    const pilot = (await slipway.json<PilotView[]>(["pilots", "list"])).at(-1)!;
    await write("default: { fleet: { max: 3 } }");
    const refused = await slipway.run(["clusters", "reload"]);
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain(
      `queue local/b is gone from it, but is still needed: pilot ${pilot.id}, 1 task of run ${run}`,
    );
    // the old one stays, and status says why
    expect((await status()).clustersFile?.problem).toContain("queue local/b is gone");
    expect((await slipway.run(["status"])).stdout).toContain(
      "the one before it stays: clusters.yaml is not taken over",
    );
    expect((await slipway.json<StatusView>(["status"])).fleets.map(({ queue, max }) => `${queue} ${max}`)).toEqual([
      "default 1",
      "b 1",
    ]);
    gate.open();
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    expect((await slipway.run(["pilots", "cancel", pilot.id])).status).toBe(0);
    const reloaded = await until("the pilot to be gone", async () => {
      const said = await slipway.run(["clusters", "reload", "--json"]);
      return said.status === 0 ? said : undefined;
    });
    expect(JSON.parse(reloaded.stdout)).toMatchObject({ later: [], files: [file()] });
    expect((await status()).clustersFile).toMatchObject({ problem: null });
    expect((await slipway.json<StatusView>(["status"])).fleets.map(({ queue, max }) => `${queue} ${max}`)).toEqual([
      "default 3",
    ]);
    const events = await slipway.run(["events", "--since", "10m"]);
    expect(events.stdout).toMatch(/clusters\.changed {2}changes=.*local\/b: removed/);
  });

  it("by itself, also when an editor puts another file in its place; what is wrong is not taken", async () => {
    const taken = (queue: string): Promise<boolean> =>
      until(`queue ${queue}`, async () => {
        const clusters = await slipway.json<ClusterView[]>(["clusters", "list"]);
        return clusters.some(({ queues }) => queues.includes(queue));
      });
    await write("default: {}, written: {}");
    await taken("written");
    await writeFile(
      join(slipway.home, ".swp"),
      "clusters: { local: { resources: { cpus: 2, licence: 1 }, queues: { default: {}, put: {} } } }",
    );
    await rename(join(slipway.home, ".swp"), file());
    await taken("put");
    await mkdir(join(slipway.home, "clusters"), { recursive: true });
    await writeFile(
      join(slipway.home, "clusters", "more.yaml"),
      "clusters: { far: { type: slurm, bin: /none, fallback: wait, queues: { layer: {} } } }",
    );
    await taken("layer");
    await writeFile(file(), "clusters: { local: { coers: 1 } }");
    const problem = await until("what is wrong", async () => (await status()).clustersFile?.problem ?? undefined);
    expect(problem).toMatch(/clusters\.yaml:1:\d+: unknown key 'coers'/);
    await taken("put");
    await write("default: {}");
    await until("that it is over", async () => (await status()).clustersFile?.problem === null);
  });
});

describe("why knows everything by its name", () => {
  const why = (...words: string[]): Promise<Outcome> => slipway.run(["why", ...words, "--json"]);

  it("clusters, fleets, pilots; a name that may be several is explained; one that is nothing is refused", async () => {
    expect(JSON.parse((await why("far")).stdout)).toMatchObject({
      cause: "cluster-unusable",
      detail: expect.stringMatching(/cluster far cannot be used since .*: sbatch, .*not found in \/none/) as string,
      of: { kind: "cluster", id: "far" },
    });
    expect(JSON.parse((await why("far/layer")).stdout)).toMatchObject({ cause: "no-pilot", of: { kind: "fleet" } });
    expect(JSON.parse((await why("layer")).stdout)).toMatchObject({ of: { kind: "fleet", id: "far/layer" } });
    expect(JSON.parse((await why("local")).stdout)).toMatchObject({ of: { kind: "cluster" } });
    const [pilot] = await slipway.json<PilotView[]>(["pilots", "list"]);
    expect(JSON.parse((await why("pilot", pilot!.id)).stdout)).toMatchObject({ of: { kind: "pilot", id: pilot!.id } });
    await writeFile(
      join(slipway.home, "clusters", "more.yaml"),
      "clusters: { far: { type: slurm, bin: /none, fallback: wait, queues: { default: {} } } }",
    );
    expect((await slipway.run(["clusters", "reload"])).status).toBe(0);
    const both = await why("default");
    expect(both.status).toBe(2);
    expect(JSON.parse(both.stderr)).toMatchObject({
      error: { code: "ambiguous", facts: { meanings: "fleet local/default, fleet far/default" } },
    });
    expect(JSON.parse((await why("fra")).stderr)).toMatchObject({
      error: { code: "no-such-thing", facts: { suggestion: "; did you mean 'far'?" } },
    });
    expect((await why("pilot", "999")).status).toBe(2);
    expect((await why("launch", "1")).status).toBe(2);
  });

  it("wait says why nothing runs, and hints are true when they are pasted", async () => {
    const waits = await submit("--cluster", "far", "--", "true");
    const waiting = slipway.start(["--home", slipway.home, "wait", String(waits)]);
    await waiting.saw(/run \d+ waits: no pilot runs: sbatch, .*not found in \/none/, "stderr");
    const said = await slipway.run(["--home", slipway.home, "why", String(waits)]);
    expect(said.stdout).toContain(`\`slipway --home ${slipway.home} clusters check far\``);
    const unknown = await slipway.run(["show", "999", "--home", slipway.home]);
    expect(unknown.stderr).toContain(`\`slipway --home ${slipway.home} list\``);
    await slipway.run(["cancel", String(waits)]);
    expect((await waiting.ended).status).toBe(1);
  });
});
