import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunView, StatusView, TaskView } from "../../src/api/schemas.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";
import { onSmallDisk } from "./small-disk.ts";

/** Output that is not kept: said wherever one would rely on it, and never at the server's expense. */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
});

afterEach(() => slipway.cleanup());

const MB = 2 ** 20;
/** What `logs` prints of a gap; the rest is the task's own. */
const MARKER = /\n?\[slipway: [^\]\n]* missing here[^\]\n]*\]\n/;

/** On a disk of 28 MB, a task writes 60; what is left of that afterwards. */
const writeTooMuch = async (spawner: string, look: (kept: number) => Promise<void>): Promise<void> => {
  const env = { SLIPWAY_SPAWNER: spawner };
  try {
    await slipway.run(["up"], { env });
    const outcome = await slipway.run(["run", "--", "sh", "-c", "head -c 62914560 /dev/zero | tr '\\0' x"], { env });
    // the task did what it had to
    expect(outcome.status, outcome.stderr).toBe(0);
    expect(outcome.stderr).toMatch(/warning: output of 1 task .*lost/);
    const { status, stdout, stderr } = await slipway.run(["logs", "1.0"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/1\.0: .* of its output .* lost: .*no room/);
    const kept = Buffer.byteLength(stdout.replace(MARKER, ""));
    expect(kept).toBeGreaterThan(MB);
    const lost = 60 * MB - kept;
    const shown = await slipway.json<TaskView>(["show", "1.0"]);
    expect(shown).toMatchObject({ state: "DONE", exitCode: 0, stdoutBytes: kept });
    expect(shown.outputLost).toEqual({ bytes: lost, stdout: lost, stderr: 0, reason: "no-room" });
    expect(shown.attempts[0]!.outputLost).toEqual(shown.outputLost);
    await look(kept);
  } finally {
    await slipway.run(["down", "--now"]);
  }
};

describe("a task that writes more than the disk holds", () => {
  it("what was lost is said by logs, show, JSON and the summary, also after a restart; the server goes on", (ctx) =>
    onSmallDisk(ctx, slipway.home, "28m", () =>
      writeTooMuch("native", async (kept) => {
        expect((await slipway.run(["logs", "1.0", "--stderr"])).status).toBe(0);
        for (let i = 0; i < 2; i += 1)
          expect((await slipway.run(["run", "--env", `PAD=${"x".repeat(100_000)}`, "--", "true"])).status).toBe(0);
        const { server } = await slipway.json<StatusView>(["status"]);
        expect(server).toMatchObject({ state: "running", journalReserve: { lent: true } });
        expect(server.detail).toMatch(/the disk is full: the journal continues in its reserve/);
        expect(await slipway.serverLog()).not.toContain("the journal is full");
        await slipway.run(["down"]);
        await slipway.run(["up"]);
        const { outputLost } = await slipway.json<RunView>(["show", "1"]);
        expect(outputLost).toEqual({ tasks: 1, bytes: 60 * MB - kept });
        expect((await slipway.run(["journal", "verify"])).status).toBe(0);
      }),
    ));

  it("the same with the spawner in Node", (ctx) =>
    onSmallDisk(ctx, slipway.home, "28m", () => writeTooMuch("node", () => Promise.resolve())));
});

/** This many numbered lines of ten bytes. */
const lines = (count: number): string[] => ["sh", "-c", `seq -f %09.0f 1 ${count}`];
const numbered = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, i) => `${String(from + i).padStart(9, "0")}\n`).join("");

const LIMITS = `
default: pair
clusters:
  pair: { type: local, resources: { cpus: 4 }, queues: { both: { nodes: 2 } } }
limits: { output-per-task: 100000B, output-per-run: 150000B }
`;

describe("limits of output", () => {
  it("keep the head and the last 64 KB of a task, and say so; of a run's later tasks only the last 64 KB; ranks too", async () => {
    await mkdir(slipway.home, { recursive: true });
    await writeFile(join(slipway.home, "clusters.yaml"), LIMITS);
    await slipway.run(["up"]);
    const outcome = await slipway.run(["run", "--", ...lines(40_000)]);
    expect(outcome).toMatchObject({
      status: 0,
      stderr: expect.stringMatching(/warning: output of 1 task is incomplete/),
    });
    const tail = 400_000 - 65_536;
    const lost = tail - 100_000;
    const logs = await slipway.run(["logs", "1"]);
    expect(logs.status).toBe(1);
    expect(logs.stderr).toBe("1.0: 228.97K of its output was lost: more than limits.output-per-task\n");
    const marker = `[slipway: ${lost} bytes are missing here: more than limits.output-per-task]\n`;
    expect(logs.stdout === `${numbered(1, 10_000)}${marker}${numbered(1, 40_000).slice(tail)}`).toBe(true);
    const json = await slipway.run(["logs", "1.0", "--json"]);
    expect(json.status).toBe(1);
    expect(JSON.parse(json.stdout.trimEnd().split("\n").at(-1)!)).toEqual({
      task: "1.0",
      stream: "stdout",
      outputLost: { bytes: lost, stdout: lost, stderr: 0, reason: "output-per-task" },
    });

    // one after the other: the first stays within the run's limit, the second exceeds it
    await writeFile(
      join(slipway.cwd, "two.yaml"),
      `tasks:\n  - { name: first, run: "seq -f %09.0f 1 15000" }\n  - { name: second, after: first, run: "seq -f %09.0f 1 20000" }\n`,
    );
    expect((await slipway.run(["run", "two.yaml"])).status).toBe(0);
    expect((await slipway.json<TaskView>(["show", "2.0"])).outputLost).toBeNull();
    const second = await slipway.json<TaskView>(["show", "2.1"]);
    expect(second.stdoutBytes! + second.outputLost!.bytes).toBe(200_000);
    expect(second.outputLost).toMatchObject({ reason: "output-per-run" });
    const both = await slipway.run(["logs", "2"]);
    expect(both).toMatchObject({ status: 1, stderr: expect.stringMatching(/^2\.1: .* limits.output-per-run\n$/) });
    expect(both.stdout).toMatch(/2\.1: \[slipway: \d+ bytes are missing here/);
    expect((await slipway.json<RunView>(["show", "2"])).outputLost).toMatchObject({ tasks: 1 });

    // each of two agents keeps its rank's head and tail; the task reports what both lost
    expect((await slipway.run(["run", "--nodes", "2", "--ranks", "2", "--", ...lines(40_000)])).status).toBe(0);
    const ranks = await slipway.json<TaskView>(["show", "3.0"]);
    expect(ranks.outputLost!.bytes).toBeGreaterThanOrEqual(2 * lost);
    const ofRanks = await slipway.run(["logs", "3.0"]);
    expect(ofRanks.status).toBe(1);
    // their heads end with a line: everything but the markers is theirs
    const theirs = ofRanks.stdout.split("\n").filter((line) => !line.startsWith("[slipway: "));
    expect(800_000 - theirs.join("\n").length).toBe(ranks.outputLost!.bytes);

    // it outlives the server, its journal's compaction and the attempt
    await slipway.run(["retry", "1", "--all"]);
    await slipway.run(["wait", "1"]);
    await slipway.run(["journal", "compact"]);
    await slipway.run(["down"]);
    await slipway.run(["up"]);
    const again = await slipway.json<TaskView>(["show", "1.0"]);
    expect(again.attempts.map((attempt) => attempt.outputLost?.reason)).toEqual(["output-per-task", "output-per-run"]);
    expect(await slipway.json<TaskView>(["show", "3.0"])).toEqual(ranks);
  });
});
