import { type ChildProcess, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFile, readdir, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Ending } from "../../src/core/events.ts";
import { FRACTION } from "../../src/core/resources.ts";
import { readSpool } from "../../src/protocol/spool.ts";
import { type PlayedServer, assign, define, playServer, resultOf, results, welcome } from "./played-server.ts";
import { ROOT } from "./slipway-process.ts";

/** An agent in the job of one task: the real one, with a test as its server. */

let played: PlayedServer;
beforeEach(async () => {
  played = await playServer();
});
afterEach(() => played.cleanup());

const OF_ONE = { taskJob: { id: 7, element: 0 }, declared: { cpus: FRACTION, mem: 1e9 }, patienceMs: 30_000 };

const statusOf = async (agent: ChildProcess): Promise<number | null> =>
  agent.exitCode ?? ((await once(agent, "exit")) as [number | null])[0];

const spools = async (): Promise<string[]> => readdir(join(played.home, "spool"));

describe("an agent for one task", () => {
  it("says whose job it is and offers exactly what that task asks for; --element is its number in an array", async () => {
    played.start(OF_ONE, ["--element", "41"]);
    const hello = await (await played.peer(0)).saw("hello");
    expect(hello).toMatchObject({ pilot: 0, taskJob: { id: 7, element: 41 } });
    expect(hello.resources).toEqual({ cpus: FRACTION, mem: 1e9 });
  });

  it("ends well when its task's result is acknowledged, however that task ended", async () => {
    const agent = played.start(OF_ONE);
    const server = await played.peer(0);
    await server.saw("hello");
    welcome(server);
    define(server, played.home);
    assign(server, 0, 1, "exit 3");
    expect(await resultOf(server, 0)).toMatchObject({ code: 3, ending: Ending.EXIT });
    expect(agent.exitCode).toBe(null);
    server.channel.send({ t: "ack", seq: 1 });
    expect(await server.saw("bye")).toMatchObject({ reason: "its task is over" });
    server.channel.close();
    expect(await statusOf(agent)).toBe(0);
    expect(await spools()).toEqual([]);
  });

  it("takes no second task", async () => {
    played.start(OF_ONE);
    const server = await played.peer(0);
    await server.saw("hello");
    welcome(server);
    define(server, played.home);
    assign(server, 0, 1, "echo >started; until [ -e go ]; do sleep 0.02; done");
    await played.wrote("started");
    assign(server, 5, 1, "echo >second");
    expect(await server.saw("returned")).toEqual({ t: "returned", parts: [{ run: 1, ranges: [5, 1] }] });
  });

  it("is not wanted: told to drain, it ends without a task", async () => {
    const agent = played.start(OF_ONE);
    const server = await played.peer(0);
    await server.saw("hello");
    welcome(server);
    server.channel.send({ t: "drain", now: true, reason: "its task has moved on" });
    await server.saw("bye");
    server.channel.close();
    expect(await statusOf(agent)).toBe(0);
  });

  it("keeps a result for the server that comes back, and ends with its acknowledgement", async () => {
    const agent = played.start(OF_ONE);
    const server = await played.peer(0);
    await server.saw("hello");
    welcome(server);
    define(server, played.home);
    assign(server, 0, 1, "exit 0");
    await resultOf(server, 0);
    server.channel.destroy("a server that was killed");
    const next = await played.peer(1);
    expect((await next.saw("hello")).held).toEqual([{ run: 1, rows: [0], attempts: [1] }]);
    welcome(next);
    expect(await resultOf(next, 0)).toMatchObject({ code: 0 });
    next.channel.send({ t: "ack", seq: results(next)[0]!.seq });
    await next.saw("bye");
    next.channel.close();
    expect(await statusOf(agent)).toBe(0);
  });

  it("without a server spools the result after its patience, and its job has failed", async () => {
    const agent = played.start({ ...OF_ONE, patienceMs: 100 });
    const server = await played.peer(0);
    await server.saw("hello");
    welcome(server);
    define(server, played.home);
    assign(server, 0, 1, "exit 0");
    await resultOf(server, 0);
    played.close();
    server.channel.destroy("a server that was killed");
    expect(await statusOf(agent)).toBe(1);
    const [file] = await spools();
    expect((await readSpool(join(played.home, "spool", file!))).messages).toHaveLength(1);
  });

  it("told to end by its manager, it interrupts its task and leaves at once, with a server or without", async () => {
    const agent = played.start(OF_ONE);
    const server = await played.peer(0);
    await server.saw("hello");
    welcome(server);
    define(server, played.home);
    assign(server, 0, 1, "trap 'exit 5' TERM; echo >started; sleep 60 & wait");
    await played.wrote("started");
    played.close();
    server.channel.destroy("a server that was killed");
    agent.kill("SIGTERM");
    expect(await statusOf(agent)).toBe(1);
    expect(await spools()).toHaveLength(1);
  });

  it.each(["native", "node"])(
    "gives its task the manager's own variables and nobody else's (%s spawner)",
    async (spawner) => {
      played.start({ ...OF_ONE, spawner, variables: "^SLURMD?_" }, [], { SLURM_JOB_ID: "77", PBS_JOBID: "8" });
      const server = await played.peer(0);
      await server.saw("hello");
      welcome(server);
      define(server, played.home);
      assign(server, 0, 1, 'echo "$SLURM_JOB_ID:$PBS_JOBID" >saw.tmp; mv saw.tmp saw');
      expect(await played.wrote("saw")).toBe("77:\n");
    },
  );

  it("gives its task the authorities that were set aside for its own start", async () => {
    const environmentFile = join(played.home, "before");
    await writeFile(environmentFile, "PATH=/bin\0");
    played.start({ ...OF_ONE, environmentFile }, [], { SLIPWAY_NODE_EXTRA_CA_CERTS: "/a.pem" });
    const server = await played.peer(0);
    await server.saw("hello");
    welcome(server);
    define(server, played.home);
    assign(server, 0, 1, 'echo "$NODE_EXTRA_CA_CERTS:$SLIPWAY_NODE_EXTRA_CA_CERTS" >saw.tmp; mv saw.tmp saw');
    expect(await played.wrote("saw")).toBe("/a.pem:\n");
  });

  it("leaves the next one the code that was compiled for it, and takes none that is damaged", async () => {
    for (const name of ["agent.cjs", "agent-quick.cjs"])
      await copyFile(join(ROOT, "dist", name), join(played.home, name));
    const start = () => spawnSync(process.execPath, [join(played.home, "agent-quick.cjs"), "--spawner"], { input: "" });
    const caches = async () => (await readdir(played.home)).filter((name) => name.endsWith(".cache"));
    expect(start().status).toBe(0);
    const [name] = await caches();
    const file = join(played.home, name!);
    const { ino, size } = await stat(file);
    expect(start().status).toBe(0);
    expect((await stat(file)).ino).toBe(ino);
    await truncate(file, size - 1);
    expect(start()).toMatchObject({ status: 0, stderr: Buffer.alloc(0) });
    expect((await stat(file)).ino).not.toBe(ino);
    expect(await caches()).toEqual([name]);
  });

  it("starts the ranks of its task itself where no launcher was named, and ends with them", async () => {
    const agent = played.start({ ...OF_ONE, declared: { cpus: 2 * FRACTION } });
    const server = await played.peer(0);
    const hello = await server.saw("hello");
    welcome(server);
    define(server, played.home);
    const item = 'echo >"rank-$SLIPWAY_RANK"';
    const part = { node: 0, hosts: [hello.host], ranks: [2], by: "agents" as const };
    const resources = { cpus: FRACTION };
    server.channel.send({ t: "ranks", run: 1, row: 0, attempt: 1, group: 0, item, resources, ...part });
    await Promise.all([played.wrote("rank-0"), played.wrote("rank-1")]);
    expect(await resultOf(server, 0)).toMatchObject({ code: 0, ending: Ending.EXIT });
    server.channel.send({ t: "ack", seq: 1 });
    await server.saw("bye");
    server.channel.close();
    expect(await statusOf(agent)).toBe(0);
  });

  it("has a launcher start the ranks on the nodes of its job", async () => {
    const [hostsFile, program] = [join(played.home, "hosts"), join(played.home, "launcher")];
    await writeFile(hostsFile, "n1\nn2\n");
    await writeFile(program, '#!/bin/sh\necho "$SLIPWAY_HOSTS $*" >launched.tmp; mv launched.tmp launched\n', {
      mode: 0o755,
    });
    played.start({ ...OF_ONE, declared: { cpus: 3 * FRACTION }, ranks: { by: "srun", program, hostsFile } });
    const server = await played.peer(0);
    await server.saw("hello");
    welcome(server);
    define(server, played.home);
    const part = { node: 0, hosts: ["head"], ranks: [3], by: "agents" as const };
    const resources = { cpus: FRACTION };
    server.channel.send({ t: "ranks", run: 1, row: 0, attempt: 1, group: 0, item: "x", resources, ...part });
    expect(await played.wrote("launched")).toBe("n1,n2 --kill-on-bad-exit=1 --ntasks=3 --cpus-per-task=1 sh -c x\n");
    expect(await resultOf(server, 0)).toMatchObject({ code: 0, ending: Ending.EXIT });
  });

  it("a task that outlasts the walltime of its job is over its time limit, after the signal that it may save its work", async () => {
    const lifetime = { drainMs: 0, signalMs: 2500, endMs: 4000, signal: "SIGUSR1" };
    const agent = played.start({ ...OF_ONE, lifetime });
    const server = await played.peer(0);
    await server.saw("hello");
    welcome(server);
    define(server, played.home);
    assign(server, 0, 1, "trap 'echo >saved' USR1; while :; do sleep 0.02; done");
    await played.wrote("saved");
    expect(await resultOf(server, 0)).toMatchObject({ ending: Ending.TIME_LIMIT });
    server.channel.send({ t: "ack", seq: 1 });
    await server.saw("bye");
    server.channel.close();
    expect(await statusOf(agent)).toBe(0);
  });

  it("does not guess which element it is", async () => {
    const agent = played.start(OF_ONE, ["--element", ""]);
    expect(await statusOf(agent)).toBe(1);
  });
});
