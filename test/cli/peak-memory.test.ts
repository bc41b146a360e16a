import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { ROOT, type SlipwayHome, createHome } from "./slipway-process.ts";

/** How much memory attempts had, as people see it. */

const MB = 2 ** 20;
const absent = existsSync(join(ROOT, "dist", "slipway-spawner")) ? "" : "there is no native spawner";

/** Keeps `megabytes` of what it reads, all at once, and ends. */
const hold = (megabytes: number): string =>
  `head -c ${megabytes * MB} /dev/zero | tail -c ${megabytes * MB} >/dev/null`;

let slipway: SlipwayHome;

const run = async (script: string, options: readonly string[] = [], statuses = [0]): Promise<TaskView> => {
  const { id } = await slipway.json<RunView>(["run", "--quiet", ...options, "--", "sh", "-c", script], { statuses });
  return slipway.json<TaskView>(["show", `${id}.0`]);
};

describe.skipIf(absent !== "")(`peak memory${absent && ` (skipped: ${absent})`}`, () => {
  beforeAll(async () => {
    slipway = await createHome();
    await slipway.run(["up"], { env: { SLIPWAY_SPAWNER: "native" } });
  });
  afterAll(() => slipway.cleanup());

  it("of a task that holds 200 MB is about that, in show, its JSON and after a restart", async () => {
    const { id, peakMemory, attempts } = await run(hold(200));
    expect(peakMemory!.bytes).toBeGreaterThan(200 * MB);
    expect(peakMemory!.bytes).toBeLessThan(230 * MB);
    expect(peakMemory!.source).toMatch(/^(rusage|watch)$/);
    expect(attempts.map((attempt) => attempt.peakMemory)).toEqual([peakMemory]);
    const { stdout } = await slipway.run(["show", id]);
    expect(stdout).toMatch(/^peak memory +2\d\d(\.\d+)?M \((rusage|watch)\)$/m);
    expect((await slipway.run(["journal", "compact"])).status).toBe(0);
    await slipway.run(["down"]);
    await slipway.run(["up"], { env: { SLIPWAY_SPAWNER: "native" } });
    expect((await slipway.json<TaskView>(["show", id])).peakMemory).toEqual(peakMemory);
  });

  it("counts a child of a child, and is known of a task that ends at once", async () => {
    const below = await run(`sh -c 'sh -c "${hold(100)}; true"; true'; true`);
    expect(below.peakMemory!.bytes).toBeGreaterThan(100 * MB);
    expect(below.peakMemory!.bytes).toBeLessThan(130 * MB);
    const short = await run(":");
    expect(short.peakMemory!.bytes).toBeGreaterThan(0);
    expect(short.peakMemory!.bytes).toBeLessThan(50 * MB);
  });

  it("is each attempt's own: the last one's is the task's", async () => {
    const task = await run(`if [ {attempt} = 1 ]; then ${hold(100)}; exit 1; fi`, ["--retries", "1"]);
    const [first, second] = task.attempts.map(({ peakMemory }) => peakMemory!.bytes);
    expect(first).toBeGreaterThan(100 * MB);
    expect(second).toBeLessThan(50 * MB);
    expect(task.peakMemory!.bytes).toBe(second);
  });

  it("comes with wall time, CPU time and I/O of each attempt, and its last lines", async () => {
    const burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    const write = "dd if=/dev/zero of=big bs=1M count=8 conv=fsync 2>/dev/null; rm big";
    const script = `if [ {attempt} = 1 ]; then ${burn}; ${write}; echo first >&2; exit 3; fi; echo second`;
    const task = await run(script, ["--retries", "1"]);
    const [first, second] = task.attempts;
    expect(first!.cpu!.user + first!.cpu!.system).toBeGreaterThan(0.05);
    expect(first!.wall).toBeGreaterThanOrEqual(0.05);
    // where the directory is in memory nothing goes to storage
    expect([0, 8 * MB]).toContain(Math.min(first!.io!.writtenBytes, 8 * MB));
    expect(first!.io!.source).toBe("rusage");
    expect(second!.cpu!.user + second!.cpu!.system).toBeLessThan(first!.cpu!.user + first!.cpu!.system);
    expect(task).toMatchObject({ cpu: second!.cpu, io: second!.io, wall: second!.wall });
    expect([first, second]).toMatchObject([
      { lastStderr: "first", lastStdout: null },
      { lastStderr: null, lastStdout: "second" },
    ]);
    const { stdout } = await slipway.run(["show", task.id]);
    expect(stdout).toMatch(/^CPU time +(at most 10 ms|\S+ \S+ \(user .*, system .*\))$/m);
    expect(stdout).toMatch(/^I\/O +read \S+, written \S+ \(rusage\)$/m);
    expect(stdout).toContain("attempt 1, last lines of stderr:\n  first\n\nattempt 2, last lines of stdout:\n  second");
    await slipway.run(["journal", "compact"]);
    await slipway.run(["down"]);
    await slipway.run(["up"], { env: { SLIPWAY_SPAWNER: "native" } });
    expect((await slipway.json<TaskView>(["show", task.id])).attempts).toEqual(task.attempts);
  });

  it("is unknown, and said to be, where nobody could tell: nothing started, or Node's spawner and no time to look", async () => {
    const failed = await slipway.json<RunView>(["run", "--quiet", "--", "/no/such/command"], { statuses: [1] });
    expect((await slipway.json<TaskView>(["show", `${failed.id}.0`])).peakMemory).toBeNull();
    await slipway.run(["down", "--now"]);
    await slipway.run(["up"], { env: { SLIPWAY_SPAWNER: "node" } });
    const { id, state, peakMemory, cpu, io } = await run(":");
    expect({ state, cpu, io }).toEqual({ state: "DONE", cpu: null, io: null });
    // on a machine that is busy enough even this may take long enough to be looked at
    if (peakMemory !== null) expect(peakMemory.source).toBe("watch");
    else expect((await slipway.run(["show", id])).stdout).not.toContain("peak memory");
  });
});
