import { randomUUID } from "node:crypto";
import { duplexPair } from "node:stream";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createAgents } from "../../../src/agent-links/agents.ts";
import { heartbeatFor } from "../../../src/agent-links/heartbeat.ts";
import { createReplay } from "../../../src/core/snapshot.ts";
import { createState } from "../../../src/core/state.ts";
import { openJournal } from "../../../src/journal/index.ts";
import type { AgentMessage, ServerMessage } from "../../../src/protocol/messages.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { createClock } from "../../../src/server/clock.ts";
import { createEngine } from "../../../src/server/engine.ts";
import { createPeer, helloOf } from "../../cli/protocol-peer.ts";
import { fakeDisk } from "../journal/disk.ts";

const pages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };

const turns = async (): Promise<void> => {
  for (let n = 0; n < 20; n += 1) await new Promise((resolve) => void setImmediate(resolve));
};

/** A server with one agent, and what that one has heard since it was welcomed. */
const connected = async () => {
  const state = createState();
  const restore = (): never => {
    throw new Error("nothing is archived here");
  };
  const io = fakeDisk().io;
  const journal = await openJournal({ dir: "/j", epoch: 1, io }, createReplay(state, pages, { restore }));
  const engine = createEngine(state, createScheduler(), journal, createClock());
  const agents = createAgents({
    engine,
    token: "t",
    limits: { outputPerTask: 2 ** 30, outputPerRun: 2 ** 30 },
    clusterOf: () => ({ cluster: "local", queue: "", endsAt: Infinity }),
    log: () => undefined,
  });
  const [here, there] = duplexPair();
  agents.accept(there);
  const { channel, received } = createPeer<ServerMessage, AgentMessage>(here);
  channel.send(helloOf({ token: "t", uuid: randomUUID(), output: "/o" }));
  await turns();
  const heard = (): ServerMessage[] => received.filter(({ t }) => t !== "welcome");
  const close = async (): Promise<void> => {
    agents.close();
    await journal.close();
  };
  return { channel, heard, close };
};

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

it("an agent hears that its results are on disk with the answer to its heartbeat, without a message of its own", async () => {
  const { channel, heard, close } = await connected();
  channel.send({ t: "results", seq: 1, parts: [] });
  await turns();
  await vi.advanceTimersByTimeAsync(heartbeatFor(1) - 1000);
  await turns();
  expect(heard()).toEqual([]);
  channel.send({ t: "ping" });
  await turns();
  expect(heard()).toEqual([{ t: "ack", seq: 1 }, { t: "ping" }]);
  await close();
});

it("one that does not ask hears it all the same", async () => {
  const { channel, heard, close } = await connected();
  channel.send({ t: "results", seq: 1, parts: [] });
  await turns();
  await vi.advanceTimersByTimeAsync(heartbeatFor(1) + 2000);
  await turns();
  expect(heard()).toEqual([{ t: "ack", seq: 1 }]);
  await close();
});
