import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Ending } from "../../src/core/events.ts";
import { FRACTION } from "../../src/core/resources.ts";
import { readSpool } from "../../src/protocol/spool.ts";
import { type PlayedServer, assign, define, playServer, resultOf, results, welcome } from "./played-server.ts";

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

  it("does not guess which element it is", async () => {
    const agent = played.start(OF_ONE, ["--element", ""]);
    expect(await statusOf(agent)).toBe(1);
  });
});
