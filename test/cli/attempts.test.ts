import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EventView, RunView, TaskView } from "../../src/api/schemas.ts";
import { connect } from "../../src/client/index.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { processesUnder } from "./processes-under.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** Earlier attempts of a task: their rows and what they wrote, after retries, losses, compaction and restarts. */

let slipway: SlipwayHome;

beforeAll(async () => {
  slipway = await createHome();
  await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

const logs = async (...args: string[]): Promise<string> => {
  const { status, stdout, stderr } = await slipway.run(["logs", ...args]);
  return status === 0 ? stdout : `${status}: ${stderr}`;
};

const eventsOf = async (run: number): Promise<EventView[]> =>
  (await slipway.run(["events", "--run", String(run), "--json"])).stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as EventView);

const numbers = (task: TaskView): number[] => task.attempts.map(({ n }) => n);

describe("attempts", () => {
  it("the first three and the last five stay, with their output, through retries, compaction and restarts", async () => {
    const script = "echo out {attempt}; echo err {attempt} >&2; exit 1";
    const args = ["run", "--quiet", "--retries", "9", "--", "sh", "-c", script];
    const { id } = await slipway.json<RunView>(args, { statuses: [1] });
    const task = `${id}.0`;
    const check = async (kept: readonly number[], gone: readonly number[]): Promise<void> => {
      const client = connect({ home: slipway.home });
      const said = async (attempt?: number): Promise<string> => {
        const pieces: Buffer[] = [];
        for await (const piece of client.taskLogs(id, 0, { attempt })) pieces.push(piece);
        return Buffer.concat(pieces).toString();
      };
      try {
        const view = await client.task(id, 0);
        expect([numbers(view), view.attemptsDropped]).toEqual([kept, gone.length]);
        for (const { state, exitCode, host, reason } of view.attempts)
          expect([state, exitCode, reason, host === null]).toEqual(["FAILED", 1, "exit code 1", false]);
        expect(await Promise.all(kept.map(said))).toEqual(kept.map((n) => `out ${n}\n`));
        expect(await said()).toBe(`out ${kept.at(-1)}\n`);
        for (const n of gone) await expect(said(n)).rejects.toMatchObject({ code: "no-such-attempt" });
      } finally {
        client.close();
      }
    };
    await check([1, 2, 3, 6, 7, 8, 9, 10], [4, 5]);
    expect((await slipway.run(["show", task])).stdout).toContain("attempts 4 to 5 are no longer kept (2)");
    expect(await logs(task, "--attempt", "2", "--stderr")).toBe("err 2\n");
    expect(await logs(String(id), "--attempt", "2", "--json")).toBe(
      `${JSON.stringify({ task, stream: "stdout", line: "out 2" })}\n`,
    );
    expect(await logs(task, "--attempt", "4")).toMatch(/^2: .*has no attempt 4; of its 10 attempts the first 3/);
    expect(await logs(task, "--attempt", "0")).toMatch(/^2: .*--attempt/);
    const told = (await eventsOf(id)).filter(({ task: about }) => about === task);
    expect(told.map(({ event, detail }) => [event, detail?.["attempt"], detail?.["reason"]])).toEqual([
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => ["attempt.failed", n, "exit code 1"]),
      ["task.ended", 10, "exit code 1"],
    ]);

    expect((await slipway.run(["journal", "compact"])).status).toBe(0);
    await check([1, 2, 3, 6, 7, 8, 9, 10], [4, 5]);
    await slipway.run(["down"]);
    await slipway.run(["up"]);
    await check([1, 2, 3, 6, 7, 8, 9, 10], [4, 5]);
    await slipway.run(["retry", String(id)]);
    expect((await slipway.run(["wait", String(id)])).status).toBe(1);
    await check([1, 2, 3, 16, 17, 18, 19, 20], [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
  });

  it("of a run with several tasks the task must be named", async () => {
    const { id } = await slipway.json<RunView>(["run", "--array", "1-2", "--", "echo", "x"]);
    expect(await logs(String(id), "--attempt", "1")).toMatch(/^2: .*slipway logs \d+\.1 --attempt 1/);
  });

  it("what a lost attempt had written is there, and its loss is an event with the reason", async () => {
    const gate = createGate(slipway.cwd, "lost");
    const script = `echo begun in {attempt}; ${gate.script.replaceAll("{", "{{").replaceAll("}", "}}")}; echo over`;
    const { run } = await slipway.json<{ run: number }>(["submit", "--", "sh", "-c", script]);
    await gate.arrived(1);
    // shown while it runs: then the server knows where it is
    await until("its first line", async () => ((await logs(`${run}.0`)) === "begun in 1\n" ? true : undefined));
    const agent = (await processesUnder(slipway.root)).find(({ command }) => command.includes("agent-quick.cjs"))!;
    process.kill(agent.pid, "SIGKILL");
    await gate.arrived(2);
    gate.open();
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    const view = await slipway.json<TaskView>(["show", `${run}.0`]);
    expect(view.attempts).toMatchObject([
      { n: 1, state: "LOST" },
      { n: 2, state: "DONE" },
    ]);
    expect(await logs(`${run}.0`, "--attempt", "1")).toBe("begun in 1\n");
    expect(await logs(`${run}.0`)).toBe("begun in 2\nover\n");
    const lost = (await eventsOf(run)).find(({ event }) => event === "attempt.lost");
    expect(lost).toMatchObject({ task: `${run}.0`, detail: { attempt: 1, reason: view.attempts[0]!.reason } });
    expect(lost!.detail!["reason"]).toBeTruthy();
  });
});
