import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { MPI_SUM } from "../fixtures/mpi-sum.ts";
import { until } from "../until.ts";
import { processesUnder } from "./processes-under.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** Tasks whose ranks run together on two agents of one pilot: here two agents of this machine. */

let slipway: SlipwayHome;

const CLUSTERS = `
default: pair
clusters:
  pair: { type: local, resources: { cpus: 8 }, queues: { both: { nodes: 2 } } }
`;

const run = (...args: string[]): Promise<RunView> =>
  slipway.json<RunView>(["run", ...args], { statuses: [0, 1], timeoutMs: 115_000 });
const task = (id: string): Promise<TaskView> => slipway.json<TaskView>(["show", id]);
const logs = async (id: string): Promise<string[]> =>
  (await slipway.run(["logs", id])).stdout.split("\n").slice(0, -1).toSorted();
const sh = (script: string): string[] => ["--", "sh", "-c", script];
const linesOf = async (name: string): Promise<string[]> =>
  (await readFile(join(slipway.cwd, name), "utf8").catch(() => "")).split("\n").slice(0, -1);
const has = (name: string, count: number): Promise<string[]> =>
  until(`${count} lines in ${name}`, async () => {
    const lines = await linesOf(name);
    return lines.length >= count ? lines : undefined;
  });

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(join(slipway.home, "clusters.yaml"), CLUSTERS);
  await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

describe("ranks of one task", () => {
  it("run on both agents at once, know each other, and their output is the task's", async () => {
    const done = await run(
      "--nodes",
      "2",
      "--ranks",
      "6",
      ...sh(
        'echo "$SLIPWAY_RANK/$SLIPWAY_RANKS $SLIPWAY_NODE_RANK:$SLIPWAY_LOCAL_RANK $SLIPWAY_NODES $SLIPWAY_RANKS_PER_HOST $RANK $WORLD_SIZE"',
      ),
    );
    expect(done.state).toBe("DONE");
    expect(await logs(`${done.id}.0`)).toEqual([
      "0/6 0:0 2 3,3 0 6",
      "1/6 0:1 2 3,3 1 6",
      "2/6 0:2 2 3,3 2 6",
      "3/6 1:0 2 3,3 3 6",
      "4/6 1:1 2 3,3 4 6",
      "5/6 1:2 2 3,3 5 6",
    ]);
    const task = await slipway.json<TaskView>(["show", `${done.id}.0`]);
    expect(task.ranks).toMatchObject({ count: 6, nodes: 2, places: [{ ranks: 3 }, { ranks: 3 }], totals: { cpus: 6 } });
    const { stdout } = await slipway.run(["show", `${done.id}.0`]);
    for (const line of [/^ranks +6 on \d nodes?$/m, /^hosts +\S+ \(3\), \S+ \(3\)$/m, /^in all +cpus 6$/m])
      expect(stdout).toMatch(line);
  });

  it("have a TMPDIR and cores of their own, and files of their own where output goes to a file", async () => {
    const done = await run(
      "--ranks",
      "4",
      "--cpus-per-rank",
      "2",
      "--pin",
      "--stdout",
      "out.txt",
      ...sh('touch "$TMPDIR/$SLIPWAY_RANK"; ls "$TMPDIR"; echo "$SLIPWAY_CPUS"'),
    );
    expect(done.state).toBe("DONE");
    for (const rank of [0, 1, 2, 3]) expect(await linesOf(`out.txt.${rank}`)).toEqual([String(rank), "2"]);
  });

  it("are started again where those of the attempt before take their time to end", async () => {
    const slow = 'trap "sleep 1; exit 0" TERM; while :; do sleep 0.05; done';
    const done = await run(
      "--nodes",
      "2",
      "--ranks",
      "8",
      "--retries",
      "1",
      // all ranks of the second agent run, and hold its slots, when one of the first agent's fails
      ...sh(
        `if [ $SLIPWAY_ATTEMPT = 1 ]; then echo x >> begun; [ $SLIPWAY_RANK = 0 ] || { ${slow}; }; ` +
          'while [ "$(wc -l < begun)" -lt 8 ]; do sleep 0.05; done; exit 3; fi; echo "$SLIPWAY_RANK"',
      ),
    );
    expect(done.state).toBe("DONE");
    expect((await task(`${done.id}.0`)).attempts.length).toBe(2);
  });

  it("wait until there is room for all of them: nothing of it starts before", async () => {
    const small = await slipway.json<{ run: number }>([
      "submit",
      "--array",
      "1-8",
      ...sh("echo x >> small; until [ -e go ]; do sleep 0.05; done"),
    ]);
    await has("small", 8);
    const large = await slipway.json<{ run: number }>([
      "submit",
      "--nodes",
      "2",
      "--ranks",
      "8",
      ...sh("ls go && echo $SLIPWAY_RANK >> large"),
    ]);
    // more small tasks behind it do not delay it for ever
    const behind = await slipway.json<{ run: number }>([
      "submit",
      "--array",
      "1-40",
      ...sh("echo $SLIPWAY_TASK >> behind; sleep 0.01"),
    ]);
    await writeFile(join(slipway.cwd, "go"), "");
    await slipway.run(["wait", String(small.run), String(large.run), String(behind.run)]);
    expect(await task(`${large.run}.0`)).toMatchObject({ state: "DONE", exitCode: 0, attempts: [{ n: 1 }] });
    expect((await linesOf("large")).toSorted()).toEqual([..."01234567"]);
    expect((await linesOf("behind")).length).toBe(40);
  });

  it("end together when one fails: its code and its place are the task's, and a retry runs all of them again", async () => {
    const failed = await run(
      "--nodes",
      "2",
      "--ranks",
      "4",
      "--retries",
      "1",
      // it fails when all have begun: a rank that has not begun is ended before it writes anything
      ...sh(
        "echo $SLIPWAY_ATTEMPT >> tried; [ $SLIPWAY_RANK = 3 ] || exec sleep 1000; " +
          "until [ $(grep -cx $SLIPWAY_ATTEMPT tried) = 4 ]; do sleep 0.05; done; exit 7",
      ),
    );
    expect(failed.state).toBe("FAILED");
    const view = await task(`${failed.id}.0`);
    expect([view.exitCode, view.attempts.length]).toEqual([7, 2]);
    expect(view.reason).toMatch(/^rank 3 on .+: exit code 7$/);
    expect((await linesOf("tried")).toSorted()).toEqual(["1", "1", "1", "1", "2", "2", "2", "2"]);
    expect(await until("no rank left", async () => (await sleepers()).length === 0 || undefined)).toBe(true);
  });

  it("are cancelled as one, on both agents", async () => {
    const { run: id } = await slipway.json<{ run: number }>([
      "submit",
      "--nodes",
      "2",
      "--ranks",
      "4",
      ...sh("echo $SLIPWAY_RANK >> waiting; sleep 1000"),
    ]);
    await has("waiting", 4);
    await slipway.run(["cancel", String(id)]);
    await slipway.run(["wait", String(id)]);
    expect((await task(`${id}.0`)).state).toBe("CANCELED");
    await until("no rank left", async () => (await sleepers()).length === 0 || undefined);
    expect((await run("--nodes", "2", "--ranks", "8", "--", "true")).state).toBe("DONE");
  });

  it("go on while the server is killed and comes back, and end once", async () => {
    const { run: id } = await slipway.json<{ run: number }>([
      "submit",
      "--nodes",
      "2",
      "--ranks",
      "4",
      ...sh('echo $SLIPWAY_RANK >> over; until [ -e restarted ]; do sleep 0.05; done; echo "end $SLIPWAY_RANK"'),
    ]);
    await has("over", 4);
    const { server } = await slipway.json<{ server: { pid: number } }>(["status"]);
    process.kill(server.pid, "SIGKILL");
    await writeFile(join(slipway.cwd, "restarted"), "");
    await slipway.run(["up"]);
    await slipway.run(["wait", String(id)]);
    const view = await task(`${id}.0`);
    expect([view.state, view.attempts.length]).toEqual(["DONE", 1]);
    expect((await linesOf("over")).length).toBe(4);
    expect(await logs(`${id}.0`)).toEqual(["end 0", "end 1", "end 2", "end 3"]);
  });

  it("are lost as one with an agent, and run again at no cost", async () => {
    const { run: id } = await slipway.json<{ run: number }>([
      "submit",
      "--nodes",
      "2",
      "--ranks",
      "2",
      ...sh('echo "$SLIPWAY_ATTEMPT $PPID" >> lost; [ $SLIPWAY_ATTEMPT -gt 1 ] || sleep 1000'),
    ]);
    await has("lost", 2);
    const agents = (await processesUnder(slipway.root)).filter(({ command }) =>
      command.includes("agent.cjs --settings"),
    );
    expect(agents.length).toBeGreaterThanOrEqual(2);
    // both: the pilot is gone, and with it what the head and the other had of the task
    for (const { pid } of agents) process.kill(pid, "SIGKILL");
    await slipway.run(["wait", String(id)]);
    const view = await task(`${id}.0`);
    expect([view.state, view.attempts.map(({ lost }) => lost)]).toEqual(["DONE", [true, false]]);
  });

  it("are refused at once where no pilot could ever hold them", async () => {
    const many = await slipway.run(["submit", "--nodes", "3", "--", "true"]);
    expect([many.status, many.stderr]).toEqual([
      2,
      expect.stringMatching(/asks for nodes 3; the largest available is 2/),
    ]);
    const wide = await slipway.run(["submit", "--ranks", "9", "--", "true"]);
    expect([wide.status, wide.stderr]).toEqual([
      2,
      expect.stringMatching(/asks for ranks 9; the largest available is 8/),
    ]);
    const few = await slipway.run(["submit", "--nodes", "2", "--ranks", "1", "--", "true"]);
    expect([few.status, few.stderr]).toEqual([
      2,
      expect.stringMatching(/--ranks: 1 ranks cannot be spread over 2 nodes/),
    ]);
  });
});

describe("a real MPI program", () => {
  it("runs over two agents by mpiexec with their host file", async (ctx) => {
    if (!existsSync("/usr/bin/mpicc") || !existsSync("/usr/bin/mpiexec")) ctx.skip("Open MPI is not installed");
    await writeFile(join(slipway.cwd, "sum.c"), MPI_SUM);
    execFileSync("mpicc", ["-o", "sum", "sum.c"], { cwd: slipway.cwd });
    const root = ["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"].flatMap((pair) => ["--env", pair]);
    const done = await run("--nodes", "2", "--ranks", "4", "--rank-launcher", "mpiexec", ...root, "--", "./sum");
    expect(done.state).toBe("DONE");
    expect((await logs(`${done.id}.0`)).map((line) => line.replace(/ \S+$/, ""))).toEqual([
      "0/4 6",
      "1/4 6",
      "2/4 6",
      "3/4 6",
    ]);
  });
});

const sleepers = async (): Promise<unknown[]> =>
  (await processesUnder(slipway.root)).filter(({ command }) => command.includes("sleep 1000"));
