import { expect, it } from "vitest";
import { createGangs } from "../../../src/agent-links/gangs.ts";
import type { AgentLink } from "../../../src/agent-links/link.ts";
import { packr } from "../../../src/core/codec.ts";
import { createRun } from "../../../src/core/run.ts";
import { createState } from "../../../src/core/state.ts";
import type { ServerMessage } from "../../../src/protocol/messages.ts";
import type { Engine } from "../../../src/server/engine.ts";
import { group, spec } from "../core/model.ts";

const listener = (id: number, over: number[]): { link: AgentLink; heard: ServerMessage[] } => {
  const heard: ServerMessage[] = [];
  const channel = {
    send: (message: ServerMessage) => void heard.push(message),
    sendFrame: (frame: Buffer) => void heard.push(packr.unpack(frame.subarray(4)) as ServerMessage),
  };
  const limitsOf = () => ({ perTask: 1, perRun: 1, over: false });
  return { link: { id, channel, defined: new Map(), durable: 0, over, limitsOf } as unknown as AgentLink, heard };
};

it("an agent that gets ranks of a run again hears first that the run was over: it would forget what comes before that", () => {
  const state = createState();
  const ranks = { count: 2, by: "agents" as const };
  state.runs.set(1, createRun(1, "u", spec([group("a", 1, { ranks })]), 0, new Map()));
  const [head, other] = [listener(1, []), listener(2, [1])];
  const gangs = createGangs({ state } as Engine, (agent) => (agent === 1 ? head.link : other.link));
  gangs.assign({ run: 1, row: 0, attempt: 2, agents: [1, 2], ranks: [1, 1], ended: new Map() });
  expect(head.heard.map(({ t }) => t)).toEqual(["define", "ranks"]);
  expect(other.heard.map(({ t }) => t)).toEqual(["forget", "define", "ranks"]);
  expect(other.link.over).toEqual([]);
});
