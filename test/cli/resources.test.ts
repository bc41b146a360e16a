import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EfficiencyView, RunView, TaskView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { createHome, type SlipwayHome } from "./slipway-process.ts";
import { processesUnder } from "./processes-under.ts";

/**
 * The sum of what runs never exceeds what there is; a task that exceeds its own limits is ended completely, and says
 * why.
 */

let slipway: SlipwayHome;

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(
    join(slipway.home, "clusters.yaml"),
    "clusters: { local: { resources: { cpu: 4, mem: 2G, licence: 3 }, grace: 1s } }\n",
  );
  await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

const submit = async (...args: string[]): Promise<number> =>
  (await slipway.json<{ run: number }>(["submit", ...args])).run;
const task = (id: string): Promise<TaskView> => slipway.json<TaskView>(["show", id]);

/**
 * Runs tasks that count, while they hold what they asked for, how many of them there are. Directories are made and
 * removed atomically, so the count is never lower than the real one.
 */
const mostTogether = async (name: string, tasks: number, options: string[]): Promise<number> => {
  const here = join(slipway.cwd, name);
  await mkdir(join(here, "in"), { recursive: true });
  const script = `mkdir ${name}/in/$SLIPWAY_TASK; ls ${name}/in | wc -l >> ${name}/seen; rmdir ${name}/in/$SLIPWAY_TASK`;
  const run = await slipway.json<RunView>(["run", "--array", `1-${tasks}`, ...options, "--", "sh", "-c", script]);
  expect(run.counts).toEqual({ DONE: tasks });
  const seen = (await readFile(join(here, "seen"), "utf8")).trim().split(/\s+/).map(Number);
  expect(seen).toHaveLength(tasks);
  expect(await readdir(join(here, "in"))).toEqual([]);
  return Math.max(...seen);
};

describe("never more than there is", () => {
  it("rows 001-6 and 001-14: cpus", async () => {
    expect(await mostTogether("ones", 60, [])).toBeLessThanOrEqual(4);
    expect(await mostTogether("twos", 30, ["--cpus", "2"])).toBeLessThanOrEqual(2);
    expect(await mostTogether("threes", 15, ["--cpus", "3"])).toBe(1);
    expect(await mostTogether("fractions", 60, ["--cpus", "1.5"])).toBeLessThanOrEqual(2);
  });

  it("rows 001-15 and 001-32: memory and resources of the user's own", async () => {
    expect(await mostTogether("memory", 20, ["--cpus", "0", "--mem", "700M"])).toBeLessThanOrEqual(2);
    expect(await mostTogether("licences", 40, ["--cpus", "0", "--resource", "licence=1"])).toBeLessThanOrEqual(3);
    expect(await mostTogether("pairs", 10, ["--cpus", "0", "--resource", "licence=2"])).toBe(1);
  });

  it("different shapes of different runs count together, and what is there is used", async () => {
    const gate = createGate(slipway.cwd, "shapes");
    const [a, b] = [
      await submit("--array", "1-3", "--cpus", "1", "--resource", "licence=1", "--", ...gate.command),
      await submit("--array", "1-3", "--cpus", "1", "--", ...gate.command),
    ];
    // Four cores: all licences, and one more task beside them, but not a fifth.
    expect(await gate.arrived(4)).toHaveLength(4);
    const view = async (run: number): Promise<number> =>
      (await slipway.json<RunView>(["show", String(run)])).counts["AGENT_EXECUTING"] ?? 0;
    await until("four tasks to run", async () => ((await view(a)) + (await view(b)) === 4 ? true : undefined));
    gate.open();
    expect((await slipway.run(["wait", String(a), String(b)])).status).toBe(0);
  });

  it("a large task is not starved by small ones", async () => {
    const gate = createGate(slipway.cwd, "starve");
    const small = await submit("--array", "1-4", "--", ...gate.command);
    await gate.arrived(4);
    const large = await submit("--cpus", "4", "--", "true");
    const more = await submit("--array", "1-400", "--", "true");
    gate.open();
    expect((await slipway.run(["wait", String(small), String(large), String(more)])).status).toBe(0);
    const ended = Date.parse((await slipway.json<RunView>(["show", String(large)])).finished!);
    expect(ended).toBeLessThanOrEqual(Date.parse((await slipway.json<RunView>(["show", String(more)])).finished!));
  });
});

describe("what can never fit", () => {
  it.each([
    [["--cpus", "5"], "cpus", "5", "4"],
    [["--mem", "3G"], "mem", "3G", "2G"],
    [["--resource", "licence=4"], "licence", "4", "3"],
    [["--gpus", "1"], "gpus", "1", "0"],
    [["--resource", "unicorn=1"], "unicorn", "1", "0"],
  ])(
    "row 001-33: %j is refused with resource, amount and the largest available",
    async (options, resource, amount, largest) => {
      const { status, stderr } = await slipway.run(["submit", "--json", ...options, "--", "true"]);
      expect(status).toBe(2);
      const { error } = JSON.parse(stderr) as {
        error: { code: string; message: string; facts: Record<string, unknown> };
      };
      expect(error.code).toBe("cannot-fit");
      expect(error.facts).toMatchObject({ resource });
      expect(error.message).toContain(`${resource} ${amount}`);
      expect(error.message).toMatch(new RegExp(`largest available is ${largest}\\b`));
    },
  );
});

describe("limits of a task", () => {
  it("time-limit ends it and says so; it spends a retry", async () => {
    const { id } = await slipway.json<RunView>(["run", "--time-limit", "0.5", "--retries", "1", "--", "sleep", "600"], {
      statuses: [1],
    });
    const found = await task(`${id}.0`);
    expect(found).toMatchObject({ state: "FAILED", reason: "over its time limit of 0.5 s" });
    expect(found.attempts).toHaveLength(2);
    expect((await slipway.run(["why", `${id}.0`])).stdout).toContain("over its time limit");
  });

  it("row 001-8: an amount is worked out for each item and each attempt, and the task finds it", async () => {
    const script = 'echo $SLIPWAY_ATTEMPT $SLIPWAY_CPUS $SLIPWAY_MEM >> grown; [ "$SLIPWAY_ATTEMPT" = "$0" ]';
    const args = ["--array", "2-3", "--retries", "2", "--mem", "{item * attempt * 8}M + 1M", "--cpus", "{attempt}"];
    const run = await slipway.json<RunView>(["run", ...args, "--", "sh", "-c", script, "{item}"]);
    expect(run.counts).toEqual({ DONE: 2 });
    const M = 2 ** 20;
    const seen = (await readFile(join(slipway.cwd, "grown"), "utf8")).trim().split("\n").toSorted();
    expect(seen).toEqual(
      [`1 1 ${17 * M}`, `1 1 ${25 * M}`, `2 2 ${33 * M}`, `2 2 ${49 * M}`, `3 3 ${73 * M}`].toSorted(),
    );
    expect((await task(`${run.id}.3`)).resources).toEqual({ cpus: 3, mem: 73 * M });
    const refused = await slipway.run(["submit", "--retries", "2", "--mem", "{attempt}G", "--", "true"]);
    expect(refused.stderr).toMatch(/'true', attempt 3, asks for mem 3G; the largest available is 2G/);
  });

  it("a task over its memory is killed and says so; one below is left alone", async () => {
    // Allocates as many megabytes as its item says, and touches them all.
    const script = `const b = Buffer.alloc({item} * 1048576, 1); setTimeout(() => process.exit(b[5] - 1), {item} > 300 ? 600000 : 300);`;
    await writeFile(join(slipway.cwd, "eat.json"), "[100, 600]");
    const { id } = await slipway.json<RunView>(
      ["run", "--from-json", "eat.json", "--mem", "400M", "--", process.execPath, "-e", script],
      { statuses: [1], timeoutMs: 110_000 },
    );
    expect(await task(`${id}.0`)).toMatchObject({ state: "DONE", exitCode: 0 });
    const over = await task(`${id}.1`);
    expect(over.state).toBe("FAILED");
    expect(over.reason).toMatch(/over its memory limit: used \d+M of mem 400M/);
    expect((await slipway.run(["why", `${id}.1`])).stdout).toContain("over its memory limit");
  });

  it("with mem-retry a task that is killed for memory is tried again with more, at no cost to its retries", async () => {
    const script = 'echo $SLIPWAY_MEM >> given; [ $SLIPWAY_MEM = 2147483648 ] || exec "$0" "$@"';
    const eat = [process.execPath, "-e", "const b = Buffer.alloc(200 * 1048576, 1); setTimeout(() => b, 600000)"];
    const args = ["--mem", "40M", "--mem-retry", "2", "--", "sh", "-c", script, ...eat];
    const run = await slipway.json<RunView>(["run", ...args]);
    expect([run.counts, run.retries]).toEqual([{ DONE: 1 }, 0]);
    const M = 2 ** 20;
    expect((await readFile(join(slipway.cwd, "given"), "utf8")).trim().split("\n")).toEqual(
      [40 * M, 80 * M, 2048 * M].map(String),
    );
    const view = await task(`${run.id}.0`);
    expect(view.resources["mem"]).toBe(2048 * M);
    expect(view.attempts.map(({ mem, reason }) => [mem, reason])).toEqual([
      [40 * M, "killed for memory at 40M; tried again with 80M"],
      [80 * M, "killed for memory at 80M; tried again with 2G"],
      [2048 * M, null],
    ]);
    const shown = await slipway.run(["show", `${run.id}.0`]);
    expect(shown.stdout).toMatch(/killed for memory at 40M; tried again with 80M/);
  });

  it("show --efficiency compares what was asked for with what was used", async () => {
    const busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    const args = ["--array", "1-2", "--name", "busy", "--cpus", "2", "--mem", "200M", "--time-request", "1h"];
    const run = await slipway.json<RunView>(["run", ...args, "--", "sh", "-c", busy]);
    const { groups } = await slipway.json<EfficiencyView>(["show", String(run.id), "--efficiency"]);
    expect(groups).toMatchObject([
      { name: "busy", tasks: 2, ranks: 1, cores: { requested: 2 }, memory: { requested: 200 * 2 ** 20 }, killed: 0 },
    ]);
    const [{ memory, time }] = groups as [EfficiencyView["groups"][number]];
    expect(memory.used).toBeGreaterThan(0);
    expect(memory.enough).toBeLessThan(200 * 2 ** 20);
    expect(time).toMatchObject({ requested: 3600, used: expect.any(Number), enough: expect.any(Number) });
    const { stdout } = await slipway.run(["show", String(run.id), "--efficiency"]);
    expect(stdout).toMatch(
      /^GROUP +TASKS +CORES +ENOUGH +MEMORY +ENOUGH +TIME +ENOUGH\nbusy +2 .* of 2 .* of 200M .* of 1h/,
    );
    const refused = await slipway.run(["show", `${run.id}.1`, "--efficiency"]);
    expect(refused.status).toBe(2);
  });
});

describe("ending a task", () => {
  it("row 001-3: cancel RUN.TASK ends that one and no other", async () => {
    const gate = createGate(slipway.cwd, "one");
    const id = await submit("--array", "1-3", "--", ...gate.command);
    await gate.arrived(3);
    expect((await slipway.run(["cancel", `${id}.2`, "--reason", "not this one"])).status).toBe(0);
    await until("the task to end", async () => ((await task(`${id}.2`)).state === "CANCELED" ? true : undefined));
    gate.open();
    expect((await slipway.run(["wait", String(id)])).status).toBe(1);
    expect((await slipway.json<RunView>(["show", String(id)])).counts).toEqual({ DONE: 2, CANCELED: 1 });
    expect((await task(`${id}.2`)).reason).toBe("not this one");
  });

  it("TERM comes first, so that a task can tidy up", async () => {
    const script = "trap 'echo tidy > tidied; exit 0' TERM; echo here > armed; while :; do sleep 0.05; done";
    const id = await submit("--", "sh", "-c", script);
    await until("the trap", () => readFile(join(slipway.cwd, "armed")).catch(() => undefined));
    await slipway.run(["cancel", String(id)]);
    await slipway.run(["wait", String(id)]);
    expect(await readFile(join(slipway.cwd, "tidied"), "utf8")).toBe("tidy\n");
    expect((await task(`${id}.0`)).state).toBe("CANCELED");
  });

  it("a task that ignores TERM is killed after the grace period", async () => {
    const script = "trap '' TERM; echo here > deaf; while :; do sleep 1; done";
    const id = await submit("--", "sh", "-c", script);
    await until("the trap", () => readFile(join(slipway.cwd, "deaf")).catch(() => undefined));
    await slipway.run(["cancel", String(id)]);
    expect((await slipway.run(["wait", String(id)])).status).toBe(1);
    const found = await task(`${id}.0`);
    expect(found.state).toBe("CANCELED");
    expect(found.attempts[0]!.signal).toBe("SIGKILL");
  });

  const leaves = (name: string): string =>
    `setsid sh -c '(setsid sh -c "trap \\"\\" TERM HUP; echo \\$\\$ > ${name}.pid; exec sleep 600" &) ; exit 0'; until [ -s ${name}.pid ]; do sleep 0.02; done`;
  const left = async (): Promise<string[]> =>
    (await processesUnder(slipway.root)).map(({ command }) => command).filter((command) => command === "sleep 600");

  it("nothing a cancelled task started survives, double-forked children in sessions of their own included", async () => {
    const gate = createGate(slipway.cwd, "stray");
    const id = await submit("--", "sh", "-c", `${leaves("stray")}; ${gate.script}`);
    await gate.arrived(1);
    expect(await left()).toHaveLength(1);
    await slipway.run(["cancel", String(id)]);
    expect((await slipway.run(["wait", String(id)])).status).toBe(1);
    expect(await left()).toEqual([]);
  });

  it("nor anything a task left behind when it ended by itself", async () => {
    const { status } = await slipway.run(["run", "--quiet", "--", "sh", "-c", `${leaves("orphan")}; exit 0`]);
    expect(status).toBe(0);
    expect(await left()).toEqual([]);
  });
});
