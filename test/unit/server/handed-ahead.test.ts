import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createAssignedTasks } from "../../../src/agent/assigned-tasks.ts";
import { createAssignments } from "../../../src/agent/assignments.ts";
import { createDeparture } from "../../../src/agent/departure.ts";
import { createNodeClock } from "../../../src/agent/node-clock.ts";
import { createResultStore } from "../../../src/agent/results.ts";
import { type SessionOptions, createSession } from "../../../src/agent/session.ts";
import { createSlotLine } from "../../../src/agent/slot-line.ts";
import { SlotPool } from "../../../src/agent/slots.ts";
import type { AgentTask } from "../../../src/agent/task.ts";
import { sendAssignments } from "../../../src/agent-links/assignments.ts";
import { defineSoon } from "../../../src/agent-links/definitions.ts";
import type { AgentLink } from "../../../src/agent-links/link.ts";
import { reconcile } from "../../../src/agent-links/reconcile.ts";
import { apply } from "../../../src/core/apply.ts";
import { packr } from "../../../src/core/codec.ts";
import { unpackResults } from "../../../src/core/columns.ts";
import { Ending, type Event } from "../../../src/core/events.ts";
import { decideLosses } from "../../../src/core/losses.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { groupOf } from "../../../src/core/run.ts";
import type { Dependency } from "../../../src/core/spec.ts";
import { type Effects, NO_EFFECTS, createState } from "../../../src/core/state.ts";
import { Task } from "../../../src/core/states.ts";
import { stateOf } from "../../../src/core/table.ts";
import type { AgentMessage, ServerMessage } from "../../../src/protocol/messages.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import type { Engine } from "../../../src/server/engine.ts";
import { group, noRefusals, spec } from "../core/model.ts";

/**
 * Server and agents together, each with its real decisions: the core, the scheduler, what agents are told, and the
 * agents' own sessions, queues and slots. Messages wait in both directions until they are delivered, what agents are told
 * waits for the disk while the server's memory goes on, connections and agents are lost, processes end as drawn. Two
 * agents share one machine.
 */

const CPUS = 2;
const RESOURCES = { cpus: CPUS * FRACTION };
const RUN = 1;

/** The other end of what an agent must not call here. */
const idle = (): never[] => [];

class Node {
  open = true;
  readonly toServer: AgentMessage[] = [];
  readonly toAgent: ServerMessage[] = [];
  readonly processes: AgentTask[] = [];
  readonly results = createResultStore();
  readonly line = createSlotLine();
  readonly assignments;
  readonly session;
  readonly link: AgentLink;

  constructor(id: number, began: (task: AgentTask) => void) {
    const send = (message: AgentMessage): void => void this.toServer.push(message);
    const executor = {
      kind: "node",
      start: (task: AgentTask) => {
        began(task);
        this.processes.push(task);
      },
      end: (task: AgentTask) => {
        task.ending ??= Ending.CANCELED;
      },
      forgetRun: () => undefined,
    } as unknown as SessionOptions["executor"];
    const departure = createDeparture(() => undefined);
    const made = createAssignedTasks();
    const pace = { due: () => undefined, flush: () => this.report(), stop: () => undefined };
    const pool = new SlotPool({ capacity: RESOURCES, cpus: [0, 1], gpus: [] });
    const clock = createNodeClock();
    const shared = { made, line: this.line, executor, results: this.results, clock, departure };
    this.assignments = createAssignments({ ...shared, nullOnly: false, pool, pace, send });
    this.line.join(this.assignments);
    const parts = { stop: () => false, own: idle, others: idle, unheard: idle, drain: () => undefined };
    this.session = createSession({
      ...shared,
      assignments: this.assignments,
      identity: { slipway: "test", uuid: String(id), pilot: 1, resources: RESOURCES, output: "" },
      endsInMs: () => undefined,
      ranks: undefined,
      connection: { open: true, send, drop: () => undefined } as unknown as SessionOptions["connection"],
      parts: parts as unknown as SessionOptions["parts"],
      output: { forget: () => undefined, limit: () => undefined } as unknown as SessionOptions["output"],
      log: (text) => {
        throw new Error(text);
      },
    });
    const channel = {
      send: (message: ServerMessage) => void this.toAgent.push(message),
      sendFrame: (frame: Buffer) => void this.toAgent.push(packr.unpack(frame.subarray(4)) as ServerMessage),
    } as unknown as AgentLink["channel"];
    const limitsOf = () => ({ perTask: 1, perRun: 1, over: false });
    // every other one is told as agents of earlier versions are
    const abilities = { singles: id % 2 === 0, alike: id % 2 === 0 };
    this.link = { id, channel, defined: new Map(), limitsOf, ...abilities } as unknown as AgentLink;
  }

  /** Between its hello and the welcome results wait: the welcome sends all of them. */
  report(): void {
    const messages = this.results.take();
    if (this.open) this.toServer.push(...messages);
  }

  end(task: AgentTask, ok: boolean): void {
    this.processes.splice(this.processes.indexOf(task), 1);
    const ending = ok ? Ending.EXIT : (task.ending ?? Ending.EXIT);
    const facts = { started: 1, finished: 2, outAt: -1, outBytes: 0, errBytes: 0 };
    const { row, attempt } = task;
    task.owner.ended(task, { run: RUN, row, attempt, ending, code: ok ? 0 : 1, ...facts });
  }
}

const createWorld = (groups: Parameters<typeof spec>[0], expectedMs: number) => {
  const state = createState();
  const machine = { cluster: "local", machine: true as const, capacity: RESOURCES, covers: () => true };
  const scheduler = createScheduler(undefined, "local", [machine]);
  const nodes = new Map<number, Node>();
  /** Attempts that began, by row. */
  const begun = new Set<string>();
  /** Where each row last ended well. */
  const endedWell = new Map<number, Node>();
  /** What waits for the disk, in order. */
  const kept: (() => void)[] = [];
  /** What is prepared meanwhile. */
  const soon: (() => void)[] = [];
  const tell = (agent: number, message: ServerMessage): void =>
    void kept.push(() => void nodes.get(agent)?.toAgent.push(message));
  const effects: Effects = {
    ...NO_EFFECTS,
    ready: scheduler.ready,
    arrived: scheduler.arrived,
    left: scheduler.left,
    canceled: scheduler.canceled,
    finished: scheduler.dropRun,
    stop: (agent, run, row, attempt) =>
      tell(agent, { t: "stop", tasks: [{ run: run.id, rows: [row], attempts: [attempt] }] }),
  };
  const commit = (event: Event): number => {
    apply(state, decideLosses(state, event, 5), effects);
    noRefusals(state);
    return 0;
  };
  const run = () => state.runs.get(RUN)!;

  const onBegin = ({ row, attempt }: AgentTask): void => {
    const name = `${row}:${attempt}`;
    expect(begun.has(name), `attempt ${name} begins twice`).toBe(false);
    begun.add(name);
    for (const each of groupOf(run().groups, row).spec.after) {
      const before = "group" in each ? run().groups[each.group]! : undefined;
      for (let other = before!.first; other < before!.first + before!.count; other += 1)
        expect(endedWell.has(other), `row ${row} begins before row ${other} has ended well`).toBe(true);
    }
  };
  const join = (): void => {
    const agent = state.nextAgent;
    const facts = { uuid: `a${agent}`, pilot: 1, host: "h", version: "1", resources: RESOURCES, output: "", seq: 0 };
    commit({ type: "agent.joined", at: 1, agent, ...facts });
    scheduler.addAgent({ id: agent, resources: RESOURCES, cluster: "local", queue: "q", pilot: 1, endsAt: Infinity });
    scheduler.setAhead(agent, true);
    nodes.set(agent, new Node(agent, onBegin));
  };
  const hear = (node: Node, message: AgentMessage): void => {
    const agent = node.link.id;
    if (message.t === "returned" && message.parts.length > 0)
      commit({ type: "tasks.returned", at: 1, agent, parts: message.parts });
    if (message.t !== "results") return;
    commit({ type: "tasks.ended", at: 1, agent, seq: message.seq, parts: message.parts.map(unpackResults) });
    tell(agent, { t: "ack", seq: message.seq });
  };

  commit({ type: "run.opened", at: 1, run: RUN, uuid: "u", spec: spec(groups) });
  join();
  join();
  commit({ type: "run.committed", at: 1, run: RUN });
  for (const each of run().groups) each.expectedMs = expectedMs;

  const world = {
    run,
    nodes: () => [...nodes.values()],
    pass: (): void => {
      for (const { agent, parts, ahead = [] } of scheduler.pass(0)) {
        commit({ type: "tasks.assigned", at: 1, agent, parts, ahead });
        soon.push(() => {
          const node = nodes.get(agent);
          if (node === undefined) return;
          defineSoon(state, node.link, parts);
          defineSoon(state, node.link, ahead);
        });
        kept.push(() => {
          const node = nodes.get(agent);
          if (node !== undefined) sendAssignments(state, node.link, parts, ahead);
        });
      }
    },
    prepare: (): void => {
      for (const action of soon.splice(0)) action();
    },
    /** All that was committed so far, or the first of it, is on disk. */
    disk: (most = kept.length): void => {
      for (const action of kept.splice(0, most)) action();
    },
    toAgent: (node: Node, most = 1): void => {
      for (const message of node.toAgent.splice(0, most)) {
        if (message.t === "welcome") node.open = true;
        node.session.received(message);
      }
    },
    toServer: (node: Node, most = 1): void => {
      for (const message of node.toServer.splice(0, most)) hear(node, message);
    },
    end: (node: Node, nth: number, ok: boolean): void => {
      const task = node.processes[nth % Math.max(1, node.processes.length)];
      if (task === undefined) return;
      if (ok) endedWell.set(task.row, node);
      node.end(task, ok);
    },
    cancel: (rows: readonly number[]): void =>
      void commit({ type: "run.canceled", at: 1, run: RUN, rows, reason: "test" }),
    /** Its connection is gone, with whatever was on its way, and a new one is there. */
    reconnect: (node: Node): void => {
      node.toServer.length = 0;
      node.toAgent.length = 0;
      node.open = false;
      node.link.defined = new Map();
      const { held } = node.session.hello();
      const { drop } = reconcile({ state, commit, clock: () => 1 } as unknown as Engine, node.link.id, held);
      const acked = state.agents.get(node.link.id)!.seq;
      // what was on its way to the disk is over before it gets anything new
      scheduler.pause(node.link.id, true);
      tell(node.link.id, { t: "welcome", agent: node.link.id, epoch: 1, acked, drop, heartbeatMs: 1 });
      kept.push(() => scheduler.pause(node.link.id, false));
    },
    lose: (node: Node): void => {
      commit({ type: "agents.lost", at: 1, agents: [node.link.id], reason: "gone" });
      scheduler.removeAgent(node.link.id);
      nodes.delete(node.link.id);
      // what ended there and was never heard of has to run again
      for (const [row, where] of endedWell)
        if (where === node && stateOf(run().table, row) !== Task.DONE) endedWell.delete(row);
      join();
    },
    check: (): void => {
      const running = world.nodes().flatMap(({ processes }) => processes.filter(({ dropped }) => !dropped));
      expect(new Set(running.map(({ row }) => row)).size, "a task runs in two places").toBe(running.length);
      expect(running.length, "more runs than the machine has").toBeLessThanOrEqual(CPUS);
    },
    /** Everything is delivered, and every process ends well, until nothing happens any more. */
    settle: (): void => {
      for (let turn = 0; turn < 2000 && run().finished === 0; turn += 1) {
        world.pass();
        world.disk();
        for (const node of world.nodes()) {
          while (node.toAgent.length > 0) world.toAgent(node);
          world.end(node, 0, true);
          node.report();
          while (node.toServer.length > 0) world.toServer(node);
          world.check();
        }
      }
    },
  };
  return world;
};

const groups = fc.array(
  fc.record({
    count: fc.constantFrom(1, 1, 1, 1, 1, 1, 1, 3),
    retries: fc.nat(1),
    /** In ten: behind the one before it, behind any, or behind none. */
    after: fc.nat(9),
    other: fc.nat(),
    two: fc.boolean(),
  }),
  { minLength: 4, maxLength: 14, size: "max" },
);

const step = fc.record({
  do: fc.constantFrom(
    ...([
      "pass",
      "pass",
      "toAgent",
      "toAgent",
      "toAgent",
      "toServer",
      "toServer",
      "end",
      "end",
      "end",
      "report",
      "disk",
      "disk",
      "disk",
    ] as const),
    "prepare",
    "prepare",
    ...(["fail", "fail", "cancel", "takeback", "reconnect", "lose"] as const),
  ),
  node: fc.nat(1),
  pick: fc.nat(),
});

const steps = fc.array(step, { minLength: 60, maxLength: 200, size: "max" });

/** Several are handed ahead, or one at a time. */
const expected = fc.constantFrom(100, 400);

describe("server and agents together", () => {
  it("begin each task once, when what it waits for has ended well, within what there is, whatever is lost; all end", () => {
    fc.assert(
      fc.property(groups, steps, expected, (drawn, drawnSteps, expectedMs) => {
        const world = createWorld(
          drawn.map(({ count, retries, after, other, two }, i) => {
            const near = after === 9 || i === 0 ? [] : [after < 8 ? i - 1 : other % i];
            const all = new Set([...near, ...(two && other % 3 === 0 && near.length > 0 ? [other % i] : [])]);
            const on = [...all].map((index): Dependency => ({ group: index, on: "ok" }));
            return group(`g${i}`, count, { retries, after: on });
          }),
          expectedMs,
        );
        for (const { do: what, node: nth, pick } of drawnSteps) {
          const node = world.nodes()[nth]!;
          if (what === "pass") world.pass();
          else if (what === "prepare") world.prepare();
          else if (what === "toAgent") world.toAgent(node, 1 + (pick % 40));
          else if (what === "toServer") world.toServer(node, 1 + (pick % 4));
          else if (what === "end") world.end(node, pick, true);
          else if (what === "fail") world.end(node, pick, false);
          else if (what === "report") node.report();
          else if (what === "disk") world.disk(1 + (pick % 40));
          else if (what === "takeback") node.toAgent.push({ t: "takeback", count: pick % 3 });
          else if (what === "reconnect") world.reconnect(node);
          else if (what === "lose" && pick % 3 === 0) world.lose(node);
          else if (what === "cancel" && pick % 5 === 0) world.cancel([pick % world.run().total]);
          world.check();
        }
        world.settle();
        expect(world.run().finished, JSON.stringify([...world.run().counts])).toBeGreaterThan(0);
      }),
      { numRuns: 300 },
    );
  });
});
