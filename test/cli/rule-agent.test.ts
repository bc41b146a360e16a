import type { ChildProcess } from "node:child_process";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Ending } from "../../src/core/events.ts";
import { until } from "../until.ts";
import {
  type AgentPeer,
  type PlayedServer,
  assign,
  define as defineIn,
  playServer,
  resultOf,
  results,
  welcome,
} from "./played-server.ts";

let played: PlayedServer;
let home: string;
let peers: AgentPeer[];
let agent: ChildProcess;

/** With these settings instead of the usual ones. */
const startAgent = (change: object = {}): void => {
  agent = played.start(change);
};

const endAgent = async (): Promise<void> => {
  const ended = new Promise((resolve) => {
    if (agent.exitCode !== null || agent.signalCode !== null) resolve(undefined);
    else agent.once("exit", resolve);
  });
  agent.kill("SIGKILL");
  await ended;
};

const peer = (nth: number): Promise<AgentPeer> => played.peer(nth);
const wrote = (name: string): Promise<string> => played.wrote(name);
const define = (to: AgentPeer): void => defineIn(to, home);

beforeEach(async () => {
  played = await playServer();
  ({ home, peers } = played);
  startAgent();
});

afterEach(() => played.cleanup());

describe("a lost connection", () => {
  it("rule 4: results wait for the welcome, so that they arrive in order", async () => {
    const first = await peer(0);
    await first.saw("hello");
    welcome(first);
    define(first);
    assign(first, 0, 1, "exit 3");
    assign(first, 1, 1, "echo >started; until [ -e go ]; do sleep 0.02; done; echo >over");
    expect(await resultOf(first, 0)).toMatchObject({ attempt: 1, code: 3 });
    await wrote("started");
    first.channel.close();
    const second = await peer(1);
    expect((await second.saw("hello")).held).toEqual([{ run: 1, rows: [1, 0], attempts: [1, 1] }]);
    // it ends between hello and welcome
    await writeFile(join(home, "go"), "");
    await wrote("over");
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(results(second)).toEqual([]);
    welcome(second);
    expect(await resultOf(second, 1)).toMatchObject({ attempt: 1, code: 0 });
    expect(results(second).map(({ seq }) => seq)).toEqual([1, 2]);
  });

  it("rule 5: an attempt that was superseded is ended, and the next one of the same task runs here all the same", async () => {
    const first = await peer(0);
    await first.saw("hello");
    welcome(first);
    define(first);
    // it takes its time to end, as its grace allows
    assign(first, 0, 1, "trap '' TERM; echo >started; sleep 60");
    await wrote("started");
    first.channel.close();
    const second = await peer(1);
    await second.saw("hello");
    welcome(second, { agent: 2, drop: [{ run: 1, rows: [0], attempts: [1] }] });
    define(second);
    assign(second, 0, 2, "exit 4");
    expect(await resultOf(second, 0)).toMatchObject({ attempt: 2, code: 4 });
    expect(results(second)).toHaveLength(1);
  });
});

describe("an agent whose spawner is killed", () => {
  it("rule 5: reports what ran as lost with it, gives back what waits, and leaves: no task fails for it", async () => {
    const server = await peer(0);
    await server.saw("hello");
    welcome(server);
    define(server);
    for (let row = 0; row < 12; row += 1) assign(server, row, 1, `echo >started-${row}; sleep 60`);
    for (const row of [0, 1, 2, 3]) await wrote(`started-${row}`);
    const children = (await readFile(`/proc/${agent.pid}/task/${agent.pid}/children`, "utf8")).trim().split(" ");
    for (const child of children) process.kill(Number(child), "SIGKILL");
    await server.saw("leaving");
    for (const row of [0, 1, 2, 3]) expect(await resultOf(server, row)).toMatchObject({ ending: Ending.SPAWNER_LOST });
    const returned = server.received.filter((message) => message.t === "returned").flatMap(({ parts }) => parts);
    expect(returned).toEqual([{ run: 1, ranges: [4, 8] }]);
    for (const { seq } of results(server)) server.channel.send({ t: "ack", seq });
    await server.saw("bye");
  });
});

describe.each(["native", "node"])("an agent that is killed together with its %s spawners", (spawner) => {
  it("rule 15: leaves TMPDIRs, which the next agent on that node removes", async () => {
    await endAgent();
    peers.length = 0;
    startAgent({ spawner });
    const server = await peer(0);
    await server.saw("hello");
    welcome(server);
    define(server);
    assign(server, 0, 1, "mkdir $TMPDIR/deep; echo x >$TMPDIR/deep/file; echo $$ >started; exec sleep 60");
    const task = Number(await wrote("started"));
    // stopped, so that it cannot clean up after its spawners
    agent.kill("SIGSTOP");
    const children = (await readFile(`/proc/${agent.pid}/task/${agent.pid}/children`, "utf8")).trim().split(" ");
    for (const child of children) process.kill(Number(child), "SIGKILL");
    process.kill(task, "SIGKILL");
    await endAgent();
    const scratch = join(home, "tmp");
    expect(await readdir(scratch)).toEqual([expect.stringMatching(/^slipway-[0-9a-f]{8}-\d+$/)]);
    startAgent({ spawner });
    await (await peer(1)).saw("hello");
    await until("nothing is left", async () => ((await readdir(scratch)).length === 0 ? true : undefined));
    await until("one agent is named", async () =>
      (await readdir(join(home, "agents"))).length === 1 ? true : undefined,
    );
  });
});

describe("an agent that is told to end", () => {
  it("says so first, gives back what comes too late, and waits for the server to close", async () => {
    const server = await peer(0);
    await server.saw("hello");
    welcome(server);
    define(server);
    assign(server, 0, 1, "trap 'sleep 0.1; exit 5' TERM; echo >started; sleep 60 & wait");
    await wrote("started");
    agent.kill("SIGTERM");
    // some managers do not notify the other nodes of its pilot
    expect(await server.saw("leaving")).toMatchObject({ pilotEnds: true });
    assign(server, 1, 1, "exit 0");
    const { seq } = await server.saw("results");
    expect(server.received.findLast((message) => message.t === "returned")).toEqual({
      t: "returned",
      parts: [{ run: 1, ranges: [1, 1] }],
    });
    expect(server.received.some((message) => message.t === "bye")).toBe(false);
    server.channel.send({ t: "ack", seq });
    await server.saw("bye");
    expect(agent.exitCode).toBeNull();
    server.channel.close();
    await until("the end of the agent", () => agent.exitCode ?? undefined);
    expect(agent.exitCode).toBe(0);
    expect(await readdir(join(home, "agents"))).toEqual([]);
  });

  it("says again that its pilot ends, to the server that it finds next", async () => {
    await endAgent();
    peers.length = 0;
    startAgent({ graceMs: 60_000 });
    const server = await peer(0);
    await server.saw("hello");
    welcome(server);
    define(server);
    assign(server, 0, 1, "trap '' TERM; echo >started; until [ -e go ]; do sleep 0.02; done");
    await wrote("started");
    server.channel.destroy("test");
    agent.kill("SIGTERM");
    const next = await peer(1);
    await next.saw("hello");
    welcome(next);
    expect(await next.saw("leaving")).toEqual({
      t: "leaving",
      reason: "its pilot was told to end (SIGTERM)",
      pilotEnds: true,
    });
    await writeFile(join(home, "go"), "");
    expect(await resultOf(next, 0)).toMatchObject({ code: 0 });
  });

  it("by its server, or by a terminal that is gone, ends in the same way and says nothing of its pilot", async () => {
    const server = await peer(0);
    await server.saw("hello");
    welcome(server);
    define(server);
    assign(server, 0, 1, "trap 'echo >told; exit 5' TERM; echo >started; sleep 60 & wait");
    await wrote("started");
    server.channel.send({ t: "drain", now: true, reason: "its pilot was told to end (SIGTERM)" });
    agent.kill("SIGHUP");
    await wrote("told");
    expect(await resultOf(server, 0)).toMatchObject({ ending: Ending.INTERRUPTED });
    const said = server.received.filter((message) => message.t === "leaving");
    expect(said.map(({ pilotEnds }) => pilotEnds)).not.toContain(true);
  });
});

describe.each(["native", "node"])("a task that ends its %s spawner", (spawner) => {
  const waits = (name: string): string => `echo >${name}; until [ -e go ]; do sleep 0.02; done`;

  const start = async (): Promise<AgentPeer> => {
    await endAgent();
    peers.length = 0;
    startAgent({ spawner });
    const server = await peer(0);
    await server.saw("hello");
    welcome(server);
    define(server);
    return server;
  };

  it.each(["kill -9 $PPID; sleep 60", "kill $PPID; sleep 60"])(
    "%s: takes its neighbours with it; none of them has failed, others go on",
    async (script) => {
      const server = await start();
      // two spawners: one task in each
      for (const row of [0, 1]) assign(server, row, 1, waits(`began${row}`));
      for (const row of [0, 1]) await wrote(`began${row}`);
      assign(server, 2, 1, script);
      expect(await resultOf(server, 2)).toMatchObject({ ending: Ending.SPAWNER_LOST });
      expect(await resultOf(server, 0)).toMatchObject({ ending: Ending.SPAWNER_LOST });
      await server.saw("leaving");
      await writeFile(join(home, "go"), "");
      expect(await resultOf(server, 1)).toMatchObject({ ending: Ending.EXIT, code: 0 });
    },
  );

  it("alone in it takes nobody with it, and the agent goes on", async () => {
    const server = await start();
    assign(server, 0, 1, waits("began0"));
    await wrote("began0");
    for (const [row, script] of ["kill -9 $PPID; sleep 60", "kill $PPID; sleep 60", "echo fine"].entries())
      server.channel.send({
        t: "assign",
        run: 1,
        group: 0,
        ranges: [row + 1, 1],
        attempts: 2,
        items: [script],
        alone: [row + 1],
      });
    expect(await resultOf(server, 1)).toMatchObject({ attempt: 2, ending: Ending.SPAWNER_LOST });
    expect(await resultOf(server, 2)).toMatchObject({ attempt: 2, ending: Ending.SPAWNER_LOST });
    expect(await resultOf(server, 3)).toMatchObject({ attempt: 2, ending: Ending.EXIT, code: 0 });
    assign(server, 4, 1, "exit 3");
    expect(await resultOf(server, 4)).toMatchObject({ ending: Ending.EXIT, code: 3 });
    await writeFile(join(home, "go"), "");
    expect(await resultOf(server, 0)).toMatchObject({ ending: Ending.EXIT, code: 0 });
    expect(server.received.filter(({ t }) => t === "leaving")).toEqual([]);
  });

  it("alone and cancelled before its spawner is there, it never began", async () => {
    const server = await start();
    const row = 0;
    server.channel.send({
      t: "assign",
      run: 1,
      group: 0,
      ranges: [row, 1],
      attempts: 2,
      items: ["true"],
      alone: [row],
    });
    server.channel.send({ t: "stop", tasks: [{ run: 1, rows: [row], attempts: [2] }] });
    expect((await server.saw("returned")).parts).toEqual([{ run: 1, ranges: [row, 1] }]);
  });
});
