import { randomUUID } from "node:crypto";
import { duplexPair } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FRACTION } from "../../../src/core/resources.ts";
import { createReplay } from "../../../src/core/snapshot.ts";
import { createState } from "../../../src/core/state.ts";
import { createChannel } from "../../../src/protocol/frames.ts";
import type { AgentMessage, ServerMessage } from "../../../src/protocol/messages.ts";
import { PROTOCOL_VERSION } from "../../../src/protocol/version.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { type Agents, createAgents } from "../../../src/agent-links/agents.ts";
import { createClock } from "../../../src/server/clock.ts";
import { createEngine } from "../../../src/server/engine.ts";
import { openJournal } from "../../../src/journal/index.ts";
import { fakeDisk } from "../journal/disk.ts";

const REASON = "its pilot was told to end (SIGTERM)";
const ENDS: AgentMessage = { t: "leaving", reason: REASON, pilotEnds: true };
const TOLD: ServerMessage = { t: "drain", now: true, reason: REASON };

let agents: Agents;
let close: () => Promise<void>;

beforeEach(async () => {
  const state = createState();
  const pages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };
  const replay = createReplay(state, pages, {
    restore: () => {
      throw new Error("nothing is archived here");
    },
  });
  const journal = await openJournal({ dir: "/j", epoch: 1, io: fakeDisk().io }, replay);
  const engine = createEngine(state, createScheduler(), journal, createClock());
  agents = createAgents({
    engine,
    token: "t",
    limits: { outputPerTask: 2 ** 30, outputPerRun: 2 ** 30 },
    clusterOf: () => ({ cluster: "hpc", queue: "main", endsAt: Infinity }),
    log: () => undefined,
  });
  close = async () => {
    agents.close();
    await journal.close();
  };
});
afterEach(() => close());

interface Played {
  say(message: AgentMessage): void;
  /** Settles with what it received before a ping; both sides keep their order. */
  heard(): Promise<ServerMessage[]>;
  hangUp(): void;
  /** Settles when the server has closed the connection. */
  readonly over: Promise<void>;
}

/** An agent of that pilot, welcomed. */
const join = async (pilot: number, uuid: string = randomUUID()): Promise<Played> => {
  const [here, there] = duplexPair();
  const told: ServerMessage[] = [];
  let onPing: () => void = () => undefined;
  let onWelcome: () => void = () => undefined;
  const welcomed = new Promise<void>((resolve) => {
    onWelcome = resolve;
  });
  let onOver: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    onOver = resolve;
  });
  agents.accept(there);
  const channel = createChannel<ServerMessage, AgentMessage>(
    here,
    (message) => {
      if (message.t === "ping") onPing();
      else if (message.t === "welcome") onWelcome();
      else told.push(message);
    },
    () => onOver(),
  );
  const about = { version: PROTOCOL_VERSION, slipway: "test", token: "t", host: "h", pid: 1, output: "/o" };
  const rest = { resources: { cpus: FRACTION }, epoch: 0, seq: 0, held: [], parts: [] };
  channel.send({ t: "hello", uuid, pilot, ...about, ...rest });
  await welcomed;
  return {
    say: (message) => channel.send(message),
    heard: () =>
      new Promise((resolve) => {
        onPing = () => resolve(told);
        channel.send({ t: "ping" });
      }),
    hangUp: () => channel.destroy("test"),
    over,
  };
};

describe("an agent whose pilot was told to end", () => {
  it("makes its server tell the other agents of that pilot at once, and nobody else", async () => {
    const first = await join(1);
    const second = await join(1);
    const third = await join(1);
    const other = await join(2);
    const byHand = await join(0);
    first.say(ENDS);
    await first.heard();
    expect(await second.heard()).toEqual([TOLD]);
    expect(await third.heard()).toEqual([TOLD]);
    expect([await first.heard(), await other.heard(), await byHand.heard()]).toEqual([[], [], []]);
  });

  it("tells also those that come late, or were away", async () => {
    const first = await join(1);
    const uuid = randomUUID();
    (await join(1, uuid)).hangUp();
    first.say(ENDS);
    first.say({ t: "bye", reason: "drained" });
    await (await join(2)).heard();
    expect(await (await join(1, uuid)).heard()).toEqual([TOLD]);
    expect(await (await join(1)).heard()).toEqual([TOLD]);
    expect(await (await join(2)).heard()).toEqual([]);
  });

  it("says nothing about the pilot that its manager starts again when all its agents have left", async () => {
    const [first, second] = [await join(1), await join(1)];
    first.say(ENDS);
    await first.heard();
    for (const agent of [first, second]) {
      agent.say({ t: "bye", reason: "drained" });
      await agent.over;
    }
    const again = await join(1);
    expect(await again.heard()).toEqual([]);
    expect(await (await join(1)).heard()).toEqual([]);
  });

  it("one that leaves for a reason of its own, or was started by hand, leaves alone", async () => {
    const [first, second] = [await join(1), await join(1)];
    const [byHand, alsoByHand] = [await join(0), await join(0)];
    first.say({ t: "leaving", reason: "a spawner ended: x" });
    byHand.say(ENDS);
    await first.heard();
    await byHand.heard();
    expect([await second.heard(), await alsoByHand.heard()]).toEqual([[], []]);
    expect(await (await join(0)).heard()).toEqual([]);
  });
});
