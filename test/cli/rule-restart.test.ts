import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventView, PilotView, RunView, StatusView, TaskView } from "../../src/api/schemas.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { pretendServer } from "./protocol-peer.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/**
 * The server, or an agent, dies at a bad moment. Every task writes a line when it runs, so that executions can be
 * counted.
 */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
});

afterEach(() => slipway.cleanup());

const serverPid = async (): Promise<number> => (await readEndpoint(slipway.home))!.pid;

const killServer = async (): Promise<void> => {
  const pid = await serverPid();
  process.kill(pid, "SIGKILL");
  await until("the server is gone", async () => !(await isAlive(pid)));
};

const isAlive = async (pid: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  return stat !== "" && !/\) [ZX] /.test(stat);
};

const agentPid = async (): Promise<number> => {
  const [pilot] = await slipway
    .json<PilotView[]>(["pilots", "list"])
    .then((all) => all.filter(({ ended }) => ended === null));
  return Number(pilot!.nativeId!.split(":")[0]);
};

/** Lines of the file that tasks append to. */
const executions = async (): Promise<string[]> =>
  (await readFile(join(slipway.cwd, "ran"), "utf8").catch(() => "")).split("\n").filter((line) => line !== "");

const TASK = ["--", "sh", "-c", "echo $SLIPWAY_TASK.$SLIPWAY_ATTEMPT >> ran; sleep 0.02"];

describe("the server is killed", () => {
  it("rule 1: a successor is up at once with the next epoch, adopts the agent, and nothing runs twice", async () => {
    await slipway.run(["up"]);
    const { run } = await slipway.json<{ run: number }>(["submit", "--array", "1-150", ...TASK]);
    await until("20 tasks have run", async () => (await executions()).length > 20);
    const agent = await agentPid();
    const { epoch } = (await readEndpoint(slipway.home))!;
    await killServer();
    expect((await slipway.run(["up"])).status).toBe(0);
    expect((await readEndpoint(slipway.home))!.epoch).toBe(epoch + 1);
    const waited = await slipway.run(["wait", String(run)]);
    expect(waited.status).toBe(0);
    expect(await agentPid()).toBe(agent);
    const ran = await executions();
    expect(ran.length).toBe(150);
    expect(new Set(ran).size).toBe(150);
    const view = await slipway.json<RunView>(["show", String(run)]);
    expect(view).toMatchObject({ counts: { DONE: 150 }, losses: 0, retries: 0 });
  });

  it("rule 2: killed again and again, also during submits, it loses nothing that was acknowledged", async () => {
    await slipway.run(["up"]);
    const runs: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      const { run } = await slipway.json<{ run: number }>(["submit", "--array", "1-40", ...TASK]);
      runs.push(run);
      // a submission that may or may not be accepted: either is right, half of it is not
      const risky = slipway.start(["submit", "--array", "1-10", "--", "true"]);
      await killServer();
      await risky.ended;
      expect((await slipway.run(["up"])).status).toBe(0);
    }
    for (const run of runs) expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    expect((await executions()).length).toBe(160);
    for (const view of await slipway.json<RunView[]>(["list"])) expect([40, 10]).toContain(view.total);
    expect((await slipway.run(["journal", "verify"])).status).toBe(0);
  });

  it("rule 1: of two servers started at once exactly one runs, and the other says so", async () => {
    const outcomes = await Promise.all([1, 2, 3].map(() => slipway.run(["up"])));
    expect(outcomes.filter(({ status }) => status === 0).length).toBe(1);
    for (const { status, stderr } of outcomes)
      if (status !== 0) expect(stderr).toMatch(/a server already runs .* pid \d+ on /);
  });

  it("rule 1: an agent refuses a server of a lower epoch than it has met", async () => {
    await slipway.run(["up"]);
    await slipway.run(["run", "--", "true"]);
    const endpoint = (await readEndpoint(slipway.home))!;
    await killServer();
    let refused: () => void = () => undefined;
    const done = new Promise<void>((resolve) => {
      refused = resolve;
    });
    const old = await pretendServer(slipway.home, (peer) => {
      void peer.saw("hello").then((hello) => {
        expect(hello.epoch).toBe(endpoint.epoch);
        peer.channel.send({ t: "welcome", agent: 1, epoch: endpoint.epoch - 1, acked: 0, drop: [], heartbeatMs: 5000 });
        void peer.closed.then(refused);
      });
    });
    await writeFile(
      join(slipway.home, "server.json"),
      JSON.stringify({ ...endpoint, agentSocket: undefined, port: old.port, addresses: ["127.0.0.1"] }),
    );
    await done;
    old.close();
    await slipway.run(["up"]);
    expect((await slipway.run(["run", "--", "true"])).status).toBe(0);
  });

  it("rule 4: results of an agent that ended without a server are spooled and imported", async () => {
    await slipway.run(["up"]);
    const { run } = await slipway.json<{ run: number }>([
      "submit",
      "--array",
      "1-2",
      "--",
      "sh",
      "-c",
      "echo $SLIPWAY_TASK >> ran; until [ -e go ]; do sleep 0.05; done",
    ]);
    await until("both tasks run", async () => (await executions()).length === 2);
    const agent = await agentPid();
    await killServer();
    await writeFile(join(slipway.cwd, "go"), "");
    // both end, and nobody hears of it; then the agent must go
    await until(
      "the tasks have ended",
      async () => (await readdir(`/proc/${agent}/task`)).length > 0 && (await runningTasks(run)) === 0,
    );
    process.kill(agent, "SIGTERM");
    await until("the agent is gone", async () => !(await isAlive(agent)));
    expect(await readdir(join(slipway.home, "spool"))).toHaveLength(1);
    await slipway.run(["up"]);
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    expect((await executions()).toSorted()).toEqual(["1", "2"]);
    expect(await readdir(join(slipway.home, "spool"))).toEqual([]);
  });

  it("rule 11: agents and clients find a successor at another port, and events go on", async () => {
    await slipway.run(["up"]);
    const watching = slipway.start(["run", "--array", "1-100", ...TASK]);
    await until("10 tasks have run", async () => (await executions()).length > 10);
    const before = (await readEndpoint(slipway.home))!.port;
    await killServer();
    await slipway.run(["up"]);
    expect((await readEndpoint(slipway.home))!.port).not.toBe(before);
    expect((await watching.ended).status).toBe(0);
    const events = (await slipway.run(["events", "--json"])).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as EventView);
    expect(events.map(({ event }) => event)).toEqual(
      expect.arrayContaining(["server.started", "run.submitted", "agent.joined", "run.finished"]),
    );
  });
});

/** Processes that have a run in their environment. */
const runningTasks = async (run: number): Promise<number> => {
  let count = 0;
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const environ = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
    if (environ.includes(`SLIPWAY_RUN=${run}\0`) && environ.includes(slipway.root)) count += 1;
  }
  return count;
};

describe("an agent is killed", () => {
  it("rule 5: its tasks run again as losses, at no cost to their retries, and nothing of them survives", async () => {
    await slipway.run(["up"]);
    const { run } = await slipway.json<{ run: number }>([
      "submit",
      "--array",
      "1-6",
      "--",
      "sh",
      "-c",
      "echo $SLIPWAY_TASK.$SLIPWAY_ATTEMPT >> ran; [ $SLIPWAY_ATTEMPT = 2 ] || [ $SLIPWAY_TASK -gt 2 ] || sleep 1000",
    ]);
    await until("two tasks run", async () => (await executions()).length >= 2);
    process.kill(await agentPid(), "SIGKILL");
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    const view = await slipway.json<RunView>(["show", String(run)]);
    expect(view.counts).toEqual({ DONE: 6 });
    expect(view.losses).toBeGreaterThanOrEqual(2);
    const task = await slipway.json<TaskView>(["show", `${run}.1`]);
    expect(task.attempts).toMatchObject([
      { n: 1, lost: true },
      { n: 2, lost: false, exitCode: 0 },
    ]);
    await until("nothing of it runs", async () => (await runningTasks(run)) === 0);
  });
});

describe("the journal", () => {
  it("rule 2: compaction keeps everything: shows, logs, retries, and the next start", async () => {
    await slipway.run(["up"]);
    await slipway.run(["run", "--array", "1-20", "--", "sh", "-c", "echo out-{item}; [ {item} != 7 ]"]);
    const before = await slipway.json<TaskView>(["show", "1.7"]);
    expect((await slipway.run(["journal", "compact"])).status).toBe(0);
    expect(await slipway.json<TaskView>(["show", "1.7"])).toEqual(before);
    await killServer();
    await slipway.run(["up"]);
    expect(await slipway.json<TaskView>(["show", "1.7"])).toEqual(before);
    expect((await slipway.run(["logs", "1.3"])).stdout).toBe("out-3\n");
    expect(await slipway.json(["retry", "1"])).toMatchObject({ reopened: 1 });
    expect((await slipway.run(["wait", "1"])).status).toBe(1);
    // the retry of an archived run survives a crash and another compaction
    await killServer();
    expect((await slipway.run(["journal", "compact"])).status).toBe(0);
    await slipway.run(["up"]);
    const task = await slipway.json<TaskView>(["show", "1.7"]);
    expect(task.attempts.length).toBe(2);
    expect((await slipway.json<RunView>(["show", "1"])).counts).toEqual({ DONE: 19, FAILED: 1 });
  });

  it("rule 2: a flipped byte keeps the server from starting, is named, and can be repaired", async () => {
    await slipway.run(["up"]);
    for (let i = 0; i < 3; i += 1) await slipway.run(["run", "--", "true"]);
    await slipway.run(["down"]);
    const directory = join(slipway.home, "journal");
    const segment = (await readdir(directory)).find((name) => name.endsWith(".log"))!;
    const bytes = await readFile(join(directory, segment));
    bytes[Math.floor(bytes.length / 3)]! ^= 0xff;
    await writeFile(join(directory, segment), bytes);
    const up = await slipway.run(["up"]);
    expect(up.status).toBe(3);
    expect(up.stderr).toMatch(new RegExp(`the journal is damaged: ${segment} at offset \\d+`));
    expect((await slipway.run(["journal", "verify"])).status).toBe(1);
    expect((await slipway.run(["journal", "repair"])).status).toBe(0);
    expect((await slipway.run(["up"])).status).toBe(0);
    expect((await slipway.run(["run", "--", "true"])).status).toBe(0);
  });
});

describe("status", () => {
  it("recognises a server that was killed: no server, not a hang", async () => {
    await slipway.run(["up"]);
    await slipway.json<StatusView>(["status"]);
    await killServer();
    expect((await slipway.run(["status"])).status).toBe(3);
  });
});
