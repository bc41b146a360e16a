import { describe, expect, it } from "vitest";
import { createAssignedTasks } from "../../../src/agent/assigned-tasks.ts";
import { type Assignments, createAssignments } from "../../../src/agent/assignments.ts";
import { createDeparture } from "../../../src/agent/departure.ts";
import type { Executor } from "../../../src/agent/executor.ts";
import { createNodeClock } from "../../../src/agent/node-clock.ts";
import { createResultStore, type ResultStore } from "../../../src/agent/results.ts";
import { createSlotLine, type SlotLine } from "../../../src/agent/slot-line.ts";
import { SlotPool } from "../../../src/agent/slots.ts";
import type { AgentTask } from "../../../src/agent/task.ts";
import { Ending } from "../../../src/core/events.ts";
import type { AgentMessage } from "../../../src/protocol/messages.ts";
import { RESOURCES, RUN } from "./rank-nodes.ts";

/** An agent with one cpu and tasks whose processes end when a test says so. */

interface Node {
  readonly assignments: Assignments;
  readonly line: SlotLine;
  readonly pool: SlotPool;
  readonly results: ResultStore;
  readonly started: AgentTask[];
  readonly ended: AgentTask[];
  readonly sent: AgentMessage[];
  /** Something else that waits for slots, before everything here. */
  readonly other: { waiting: boolean };
}

const startNode = (): Node => {
  const pool = new SlotPool({ capacity: RESOURCES, cpus: [0], gpus: [] });
  const line = createSlotLine();
  const results = createResultStore();
  const started: AgentTask[] = [];
  const ended: AgentTask[] = [];
  const sent: AgentMessage[] = [];
  const other = { waiting: false, serve: () => 0 };
  const executor = {
    kind: "native",
    start: (task: AgentTask) => void started.push(task),
    end: (task: AgentTask) => void ended.push(task),
  } as unknown as Executor;
  const assignments = createAssignments({
    nullOnly: false,
    made: createAssignedTasks(),
    pool,
    line,
    executor,
    results,
    pace: { due: () => undefined, stop: () => undefined },
    clock: createNodeClock(),
    departure: createDeparture(() => undefined),
    send: (message) => sent.push(message),
  });
  line.join(other);
  line.join(assignments);
  return { assignments, line, pool, results, started, ended, sent, other };
};

const assign = ({ assignments, line }: Node, rows: number, attempts = 1): void => {
  assignments.take({ t: "assign", run: 1, group: 0, ranges: [0, rows], attempts }, RUN);
  line.serve();
};

const endTask = (task: AgentTask): void => {
  const { row, attempt } = task;
  const result = { run: 1, row, attempt, ending: Ending.EXIT, code: 0, started: 0, finished: 1 };
  task.owner.ended(task, { ...result, outAt: -1, outBytes: 0, errBytes: 0 });
};

describe("tasks of an agent's own", () => {
  it("take turns in its slots, each with one result", () => {
    const node = startNode();
    assign(node, 5);
    expect(node.started.map(({ row }) => row)).toEqual([0]);
    for (let nth = 0; nth < 5; nth += 1) endTask(node.started[nth]!);
    expect([node.started.length, node.results.gathered, node.assignments.size, node.pool.size]).toEqual([5, 5, 0, 0]);
  });

  it("do not follow each other in a slot that something before them waits for", () => {
    const node = startNode();
    assign(node, 20);
    endTask(node.started[0]!);
    const { length } = node.started;
    expect(length).toBeGreaterThan(2);
    node.other.waiting = true;
    for (let nth = 1; nth < length; nth += 1) endTask(node.started[nth]!);
    expect([node.started.length, node.pool.size]).toEqual([length, 0]);
    node.other.waiting = false;
    node.line.serve();
    expect(node.started.length).toBeGreaterThan(length);
  });

  it("that were said twice are here once, and those not begun are given back", () => {
    const node = startNode();
    assign(node, 4);
    assign(node, 4);
    expect(node.assignments.size).toBe(4);
    node.assignments.giveBack();
    expect(node.sent).toEqual([{ t: "returned", parts: [{ run: 1, ranges: [1, 3] }] }]);
    expect([...node.assignments.attempts()]).toEqual([{ run: 1, row: 0, attempt: 1 }]);
  });

  it("that were superseded end without a result, though their successor is here already", () => {
    const node = startNode();
    assign(node, 1);
    expect(node.assignments.stop(1, 0, 1, true)).toBeUndefined();
    expect(node.ended).toEqual([node.started[0]]);
    assign(node, 1, 2);
    endTask(node.started[0]!);
    expect([node.results.gathered, node.assignments.size]).toEqual([0, 1]);
    endTask(node.started[1]!);
    expect([node.results.gathered, node.assignments.size, node.pool.size]).toEqual([1, 0, 0]);
  });
});
