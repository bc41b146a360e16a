import { PROTOCOL_VERSION } from "../../src/protocol/version.ts";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { dialServer, endedPart, joinAs } from "./protocol-peer.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** A real server with strangers, old friends and liars as agents. */

let slipway: SlipwayHome;

beforeAll(async () => {
  slipway = await createHome();
  // no pilots of its own: the tests play the agents
  await mkdir(slipway.home, { recursive: true });
  await writeFile(
    join(slipway.home, "clusters.yaml"),
    "clusters: { local: { type: local, queues: { default: { fleet: { max: 0 } } } } }\n",
  );
  await slipway.run(["up"]);
});

afterAll(() => slipway.cleanup());

describe("rule 12: versions", () => {
  it("rule 12: a stranger is refused with both versions named", async () => {
    const peer = await joinAs(slipway.home, { version: 99 });
    const refused = await peer.saw("refused");
    expect(refused).toMatchObject({ code: "version-mismatch", transient: false });
    expect(refused.message).toMatch(new RegExp(`version 99 .* speaks ${PROTOCOL_VERSION}$`));
    await peer.closed;
  });

  it("rule 12: an agent of the version before is taken, and told to finish and drain", async () => {
    const peer = await joinAs(slipway.home, { version: PROTOCOL_VERSION - 1 });
    await peer.saw("welcome");
    expect(await peer.saw("drain")).toMatchObject({ now: false });
    peer.channel.send({ t: "bye", reason: "drained" });
    await peer.closed;
  });
});

describe("rule 16: tokens", () => {
  it("rule 16: an agent with a wrong token is refused", async () => {
    const peer = await joinAs(slipway.home, { token: "wrong" });
    expect(await peer.saw("refused")).toMatchObject({ code: "unauthorized" });
    await peer.closed;
  });

  it("rule 16: a client at the port needs the client's token, and the agent's does not do", async () => {
    const { port } = (await readEndpoint(slipway.home))!;
    const ask = (token: string | undefined): Promise<number> =>
      new Promise((resolve, reject) => {
        request(
          {
            host: "127.0.0.1",
            port,
            path: "/api/v1/server",
            rejectUnauthorized: false,
            headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
          },
          (answer) => {
            answer.resume();
            resolve(answer.statusCode ?? 0);
          },
        )
          .on("error", reject)
          .end();
      });
    const token = async (role: string): Promise<string> =>
      (await readFile(`${slipway.home}/keys/${role}.token`, "utf8")).trim();
    expect(await ask(undefined)).toBe(401);
    expect(await ask(await token("agent"))).toBe(401);
    expect(await ask(await token("client"))).toBe(200);
  });
});

describe("liars at the door", () => {
  it("closes garbage, a 2 GB frame header and a message before the hello, and goes on", async () => {
    for (const bytes of [randomBytes(5000), Buffer.from([0, 0, 0, 0x80, 1, 2, 3]), Buffer.from([1, 0, 0, 0, 0xc0])]) {
      const socket = await dialServer(slipway.home);
      socket.on("error", () => undefined);
      socket.write(bytes);
      await once(socket, "close");
    }
    expect((await slipway.run(["status"])).status).toBe(0);
  });
});

describe("rule 4: results", () => {
  it("rule 4: results sent twice count once, acknowledgements are watermarks, and a gap is no result", async () => {
    const peer = await joinAs(slipway.home);
    await peer.saw("welcome");
    const { run } = await slipway.json<{ run: number }>(["submit", "--array", "1-4", "--", "true"]);
    const assign = await peer.saw("assign");
    expect(assign).toMatchObject({ run, ranges: [0, 4], attempts: 1 });
    const results = {
      t: "results" as const,
      seq: 1,
      parts: [endedPart(run, { n: 4 })],
    };
    peer.channel.send(results);
    peer.channel.send(results);
    expect(await peer.saw("ack")).toMatchObject({ seq: 1 });
    const view = await slipway
      .json<RunView>(["wait", String(run)])
      .then(() => slipway.json<RunView>(["show", String(run)]));
    expect(view.counts).toEqual({ DONE: 4 });
    peer.channel.send({ ...results, seq: 7 });
    expect(await peer.closed).toMatch(/closed/);
    // leave in good order
    const again = await joinAs(slipway.home);
    await again.saw("welcome");
    again.channel.send({ t: "bye", reason: "test" });
  });
});

describe("rule 5: silence is not death", () => {
  it("rule 5: a lost connection is no loss: the same agent comes back and its tasks go on", async () => {
    const uuid = "11111111-2222-4333-8444-555555555555";
    const first = await joinAs(slipway.home, { uuid });
    const { agent } = await first.saw("welcome");
    const { run } = await slipway.json<{ run: number }>(["submit", "--", "true"]);
    await first.saw("assign");
    first.channel.close();
    const second = await joinAs(slipway.home, { uuid, held: [{ run, rows: [0], attempts: [1] }] });
    expect(await second.saw("welcome")).toMatchObject({ agent, drop: [] });
    second.channel.send({
      t: "results",
      seq: 1,
      parts: [endedPart(run)],
    });
    await second.saw("ack");
    const task = await slipway.json<TaskView>(["show", `${run}.0`]);
    expect(task).toMatchObject({ state: "DONE", attempts: [{ n: 1, lost: false }] });
    second.channel.send({ t: "bye", reason: "test" });
    await second.closed;
  });

  it("rule 5: what never arrived at an agent is placed again without a loss", async () => {
    const uuid = "11111111-2222-4333-8444-666666666666";
    const first = await joinAs(slipway.home, { uuid });
    await first.saw("welcome");
    const { run } = await slipway.json<{ run: number }>(["submit", "--", "true"]);
    await first.saw("assign");
    first.channel.close();
    const second = await joinAs(slipway.home, { uuid });
    await second.saw("assign");
    const task = await slipway.json<TaskView>(["show", `${run}.0`]);
    expect(task.attempts).toMatchObject([{ n: 1, lost: false }]);
    await slipway.run(["cancel", String(run)]);
    second.channel.send({ t: "returned", parts: [{ run, ranges: [0, 1] }] });
    second.channel.send({ t: "bye", reason: "test" });
    await second.closed;
  });
});

describe("rule 9: prefetch", () => {
  it("rule 9: prefetched tasks are taken back, with acknowledgement, when another agent is idle", async () => {
    const busy = await joinAs(slipway.home, { resources: { cpus: 10_000 } });
    await busy.saw("welcome");
    const { run } = await slipway.json<{ run: number }>(["submit", "--array", "1-2", "--", "true"]);
    expect(await busy.saw("assign")).toMatchObject({ ranges: [0, 2] });
    const idle = await joinAs(slipway.home, { resources: { cpus: 10_000 } });
    await idle.saw("welcome");
    expect(await busy.saw("takeback")).toMatchObject({ count: 1 });
    busy.channel.send({ t: "returned", parts: [{ run, ranges: [1, 1] }] });
    expect(await idle.saw("assign")).toMatchObject({ run, ranges: [1, 1], attempts: 1 });
    await slipway.run(["cancel", String(run)]);
    for (const [peer, row] of [
      [busy, 0],
      [idle, 1],
    ] as const) {
      await peer.saw("stop");
      peer.channel.send({ t: "returned", parts: [{ run, ranges: [row, 1] }] });
      peer.channel.send({ t: "bye", reason: "test" });
      await peer.closed;
    }
  });
});

describe("tasks in a row", () => {
  const submitRow = async (length: number): Promise<number> => {
    const tasks = Array.from({ length }, (_, i) => ({
      name: `t${i}`,
      run: ["true"],
      ...(i === 0 ? {} : { after: `t${i - 1}` }),
    }));
    await writeFile(join(slipway.cwd, "row.yaml"), JSON.stringify({ name: "row", tasks }));
    return (await slipway.json<{ run: number }>(["submit", "row.yaml"])).run;
  };
  type Agent = Awaited<ReturnType<typeof joinAs>>;
  const assigned = (peer: Agent, row: number, nth = 1) =>
    until(
      `row ${row} is assigned`,
      () =>
        peer.received.filter((message) => message.t === "assign").filter(({ ranges }) => ranges[0] === row)[nth - 1],
    );
  const ended = (peer: Agent, run: number, seq: number, from: number, n = 1): void =>
    peer.channel.send({ t: "results", seq, parts: [endedPart(run, { from, n })] });
  const leave = async (peer: Agent): Promise<void> => {
    peer.channel.send({ t: "bye", reason: "test" });
    await peer.closed;
  };
  const done = async (run: number): Promise<RunView> => {
    await slipway.run(["wait", String(run)]);
    return slipway.json<RunView>(["show", String(run)]);
  };

  it("rule 12: an agent that does not say that it takes them ahead gets each in its turn", async () => {
    const peer = await joinAs(slipway.home);
    await peer.saw("welcome");
    const run = await submitRow(3);
    for (const row of [0, 1, 2]) {
      expect(await assigned(peer, row)).not.toHaveProperty("behind");
      expect(peer.received.filter(({ t }) => t === "assign").length).toBe(row + 1);
      ended(peer, run, row + 1, row);
    }
    expect(await done(run)).toMatchObject({ counts: { DONE: 3 }, losses: 0 });
    await leave(peer);
  });

  it("rule 4: a result that comes before that of the task it waits for is ignored until the agent sends both in order", async () => {
    const peer = await joinAs(slipway.home, { ahead: true });
    await peer.saw("welcome");
    const run = await submitRow(2);
    expect(await assigned(peer, 0)).toMatchObject({ followed: true });
    expect(await assigned(peer, 1)).toMatchObject({ attempts: 1, behind: { row: 0, attempt: 1 } });
    ended(peer, run, 1, 1);
    ended(peer, run, 2, 0);
    await until("the first is done", async () =>
      (await slipway.json<TaskView>(["show", `${run}.0`])).state === "DONE" ? true : undefined,
    );
    expect((await slipway.json<TaskView>(["show", `${run}.1`])).state).toBe("TMGR_SCHEDULING");
    ended(peer, run, 3, 1);
    expect(await done(run)).toMatchObject({ counts: { DONE: 2 }, losses: 0 });
    await leave(peer);
  });

  it("rule 5: what was handed ahead and never arrived is placed again in its turn, without a loss", async () => {
    const uuid = "11111111-2222-4333-8444-777777777777";
    const first = await joinAs(slipway.home, { uuid, ahead: true });
    await first.saw("welcome");
    const run = await submitRow(2);
    await assigned(first, 1);
    first.channel.close();
    const second = await joinAs(slipway.home, { uuid, ahead: true, held: [{ run, rows: [0], attempts: [1] }] });
    expect(await second.saw("welcome")).toMatchObject({ drop: [] });
    ended(second, run, 1, 0);
    expect(await assigned(second, 1)).toMatchObject({ attempts: 1 });
    expect(await assigned(second, 1)).not.toHaveProperty("behind");
    ended(second, run, 2, 1);
    expect(await done(run)).toMatchObject({ counts: { DONE: 2 }, losses: 0 });
    await leave(second);
  });

  it("rule 9: an agent that gives one back with all behind it gets them again, and none of them costs an attempt", async () => {
    const [one, other] = [await joinAs(slipway.home, { ahead: true }), await joinAs(slipway.home, { ahead: true })];
    await Promise.all([one.saw("welcome"), other.saw("welcome")]);
    const run = await submitRow(2);
    const holder = await Promise.any([one, other].map((peer) => assigned(peer, 1).then(() => peer)));
    holder.channel.send({ t: "leaving", reason: "test" });
    holder.channel.send({ t: "returned", parts: [{ run, ranges: [0, 2] }] });
    const rest = holder === one ? other : one;
    expect(await assigned(rest, 0)).toMatchObject({ attempts: 1, followed: true });
    expect(await assigned(rest, 1)).toMatchObject({ attempts: 1, behind: { row: 0, attempt: 1 } });
    ended(rest, run, 1, 0, 2);
    expect(await done(run)).toMatchObject({ counts: { DONE: 2 }, losses: 0 });
    await Promise.all([leave(one), leave(other)]);
  });
});
