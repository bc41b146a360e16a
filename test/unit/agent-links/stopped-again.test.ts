import { randomUUID } from "node:crypto";
import { duplexPair } from "node:stream";
import { expect, it } from "vitest";
import { createAgents } from "../../../src/agent-links/agents.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { createReplay } from "../../../src/core/snapshot.ts";
import { createState } from "../../../src/core/state.ts";
import { openJournal } from "../../../src/journal/index.ts";
import { createChannel } from "../../../src/protocol/frames.ts";
import type { AgentMessage, Hello, ServerMessage } from "../../../src/protocol/messages.ts";
import { PROTOCOL_VERSION } from "../../../src/protocol/version.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { createClock } from "../../../src/server/clock.ts";
import { createEngine } from "../../../src/server/engine.ts";
import { group, spec } from "../core/model.ts";
import { fakeDisk } from "../journal/disk.ts";

const pages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };

it("an agent that comes back is told again to stop what was cancelled while it was away", async () => {
  const state = createState();
  const restore = (): never => {
    throw new Error("nothing is archived here");
  };
  const journal = await openJournal(
    { dir: "/j", epoch: 1, io: fakeDisk().io },
    createReplay(state, pages, { restore }),
  );
  const engine = createEngine(state, createScheduler(), journal, createClock());
  const agents = createAgents({
    engine,
    token: "t",
    limits: { outputPerTask: 2 ** 30, outputPerRun: 2 ** 30 },
    clusterOf: () => ({ cluster: "local", queue: "", endsAt: Infinity }),
    log: () => undefined,
  });
  const uuid = randomUUID();
  const at = engine.clock();
  engine.commit({ type: "run.opened", at, run: 1, uuid: "u", spec: spec([group("a", 3)]) });
  engine.commit({ type: "run.committed", at, run: 1 });
  const about = { host: "h", version: "test", resources: { cpus: FRACTION }, output: "/o" };
  engine.commit({ type: "agent.joined", at, agent: 1, uuid, pilot: 0, ...about, seq: 0 });
  engine.commit({ type: "tasks.assigned", at, agent: 1, parts: [{ run: 1, ranges: [0, 2] }] });
  // the agent has no connection now: as after a crash of the server, or of the network
  engine.commit({ type: "run.canceled", at, run: 1, rows: [1], reason: "test" });

  const [here, there] = duplexPair();
  const told: ServerMessage[] = [];
  agents.accept(there);
  const stopped = new Promise<void>((resolve) => {
    const channel = createChannel<ServerMessage, AgentMessage>(
      here,
      (message) => {
        told.push(message);
        // a ping is answered behind all that is said before it
        if (message.t === "welcome") channel.send({ t: "ping" });
        if (message.t === "ping") resolve();
      },
      () => undefined,
    );
    const hello: Hello = {
      t: "hello",
      version: PROTOCOL_VERSION,
      slipway: "test",
      token: "t",
      uuid,
      pilot: 0,
      host: "h",
      pid: 1,
      output: "/o",
      resources: { cpus: FRACTION },
      epoch: 0,
      seq: 0,
      held: [{ run: 1, rows: [0, 1], attempts: [1, 1] }],
      parts: [],
    };
    channel.send(hello);
  });
  await stopped;
  expect(told.filter(({ t }) => t === "stop")).toEqual([{ t: "stop", tasks: [{ run: 1, rows: [1], attempts: [1] }] }]);
  agents.close();
  await journal.close();
});
