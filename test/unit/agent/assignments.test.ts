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
  /** Messages, and where results were sent before them. */
  readonly sent: (AgentMessage | "results")[];
  /** What was said of results: whether a slot would be idle, and whether nobody waits for them. */
  readonly due: [idle: boolean, patient: boolean][];
  /** Something else that waits for slots, before everything here. */
  readonly other: { waiting: boolean };
}

const startNode = (): Node => {
  const pool = new SlotPool({ capacity: RESOURCES, cpus: [0], gpus: [] });
  const line = createSlotLine();
  const results = createResultStore();
  const started: AgentTask[] = [];
  const ended: AgentTask[] = [];
  const sent: (AgentMessage | "results")[] = [];
  const due: [boolean, boolean][] = [];
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
    pace: {
      due: (idle, patient = false) => void due.push([idle, patient]),
      flush: () => void sent.push("results"),
      stop: () => undefined,
    },
    clock: createNodeClock(),
    departure: createDeparture(() => undefined),
    send: (message) => sent.push(message),
  });
  line.join(other);
  line.join(assignments);
  return { assignments, line, pool, results, started, ended, sent, due, other };
};

const assign = ({ assignments, line }: Node, rows: number, attempts = 1, run = RUN): void => {
  assignments.take({ t: "assign", run: 1, group: 0, ranges: [0, rows], attempts }, run);
  line.serve();
};

const endTask = (task: AgentTask, how: { ending: number; code: number } = { ending: Ending.EXIT, code: 0 }): void => {
  const { row, attempt } = task;
  const result = { run: 1, row, attempt, ...how, started: 0, finished: 1 };
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
    assign(node, 40);
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

  it("whose ends nobody waits for may be reported a while later, if they ended well", () => {
    const node = startNode();
    const known = RUN.groups.get(0)!;
    assign(node, 40, 1, { ...RUN, groups: new Map([[0, { ...known, source: { ...known.source, patient: true } }]]) });
    endTask(node.started[0]!);
    endTask(node.started[1]!, { ending: Ending.EXIT, code: 1 });
    expect(node.due).toEqual([
      [false, true],
      [false, false],
    ]);
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

  it("that are groups of their own come together: each in the queue, or behind the one it was handed ahead for", () => {
    const node = startNode();
    const behind = { row: 0, attempt: 1, only: true };
    const message = { t: "singles", run: 1, groups: [0, 0, 0], rows: [0, 1, 2], attempts: [1, 2, 1] } as const;
    node.assignments.takeSingles({ ...message, behind: [null, behind, { ...behind, row: 7 }] }, RUN);
    node.assignments.takeSingles({ ...message, attempts: 1 }, RUN);
    node.line.serve();
    // what one lies behind is not here: back; that came again, and waits in the queue now
    expect(node.sent).toEqual([{ t: "returned", parts: [{ run: 1, ranges: [2, 1] }] }]);
    expect(node.started.map(({ row }) => row)).toEqual([0]);
    expect(node.assignments.size).toBe(3);
    endTask(node.started[0]!);
    for (let nth = 1; nth < node.started.length; nth += 1) endTask(node.started[nth]!);
    expect(node.started.map(({ row, attempt }) => [row, attempt]).toSorted()).toEqual([
      [0, 1],
      [1, 2],
      [2, 1],
    ]);
  });

  it("that were superseded end without a result, though their successor is here already", () => {
    const node = startNode();
    assign(node, 1);
    expect(node.assignments.stop(1, 0, 1, true)).toEqual([]);
    expect(node.ended).toEqual([node.started[0]]);
    assign(node, 1, 2);
    endTask(node.started[0]!);
    expect([node.results.gathered, node.assignments.size]).toEqual([0, 1]);
    endTask(node.started[1]!);
    expect([node.results.gathered, node.assignments.size, node.pool.size]).toEqual([1, 0, 0]);
  });
});

/** Tasks in a row: task 0, and each of the others behind the one before it. */
const assignRow = (node: Node, count: number): void => {
  const base = { t: "assign" as const, run: 1, group: 0, attempts: 1 };
  node.assignments.take({ ...base, ranges: [0, 1], followed: true }, RUN);
  for (let row = 1; row < count; row += 1)
    node.assignments.take({ ...base, ranges: [row, 1], behind: { row: row - 1, attempt: 1, only: true } }, RUN);
  node.line.serve();
};
const rowsBegun = ({ started }: Node): number[] => started.map(({ row }) => row);

describe("tasks that were handed ahead", () => {
  it("begin in order, each when the one before it has ended with exit code 0", () => {
    const node = startNode();
    assignRow(node, 4);
    for (let row = 0; row < 4; row += 1) {
      expect(rowsBegun(node)).toEqual([0, 1, 2, 3].slice(0, row + 1));
      endTask(node.started[row]!);
    }
    expect([node.results.gathered, node.assignments.size, node.pool.size, node.sent]).toEqual([4, 0, 0, []]);
  });

  it.each([
    ["failed", { ending: Ending.EXIT, code: 1 }],
    ["was killed", { ending: Ending.SIGNAL, code: -9 }],
    ["was over its time limit", { ending: Ending.TIME_LIMIT, code: 0 }],
    ["was cancelled", { ending: Ending.CANCELED, code: 0 }],
  ])("go back untouched, after its result, when one before them %s", (_, how) => {
    const node = startNode();
    assignRow(node, 4);
    endTask(node.started[0]!);
    endTask(node.started[1]!, how);
    expect(rowsBegun(node)).toEqual([0, 1]);
    expect(node.sent).toEqual(["results", { t: "returned", parts: [{ run: 1, ranges: [2, 2] }] }]);
    expect([node.results.gathered, node.assignments.size, node.pool.size]).toEqual([2, 0, 0]);
  });

  it("wait for their turn like any other: what came before them goes first", () => {
    const node = startNode();
    assignRow(node, 2);
    node.assignments.take({ t: "assign", run: 1, group: 0, ranges: [7, 1], attempts: 1 }, RUN);
    endTask(node.started[0]!);
    endTask(node.started[1]!);
    expect(rowsBegun(node)).toEqual([0, 7, 1]);
  });

  it("begin at once when the one before them ended well already, and go back when it is not known", () => {
    const node = startNode();
    const late = (row: number, before: number, attempt = 1): void => {
      const behind = { row: before, attempt, only: true };
      node.assignments.take({ t: "assign", run: 1, group: 0, ranges: [row, 1], attempts: 1, behind }, RUN);
      node.line.serve();
    };
    assignRow(node, 2);
    endTask(node.started[0]!);
    endTask(node.started[1]!);
    late(2, 1);
    expect(rowsBegun(node)).toEqual([0, 1, 2]);
    late(3, 1, 2);
    late(4, 9);
    expect(node.sent).toEqual([3, 4].map((row) => ({ t: "returned", parts: [{ run: 1, ranges: [row, 1] }] })));
    // once its result is on the server's disk nothing is handed ahead behind it
    endTask(node.started[2]!);
    node.results.take();
    node.results.acknowledged(node.results.seq);
    assign(node, 1, 5);
    endTask(node.started[3]!);
    expect(node.assignments.size).toBe(0);
  });

  it("are given back when all that has not begun is, and stay where some of what waits for a slot is taken", () => {
    const node = startNode();
    assignRow(node, 3);
    node.assignments.take({ t: "assign", run: 1, group: 0, ranges: [10, 1], attempts: 1, followed: true }, RUN);
    const behind = { row: 10, attempt: 1, only: true };
    node.assignments.take({ t: "assign", run: 1, group: 0, ranges: [11, 1], attempts: 1, behind }, RUN);
    node.assignments.giveBack(5);
    expect(node.sent.splice(0)).toEqual([{ t: "returned", parts: [{ run: 1, ranges: [10, 2] }] }]);
    node.assignments.giveBack();
    expect(node.sent).toEqual([{ t: "returned", parts: [{ run: 1, ranges: [1, 2] }] }]);
    endTask(node.started[0]!);
    expect([rowsBegun(node), node.assignments.size]).toEqual([[0], 0]);
  });

  it("that are stopped go back with what lies behind them, and the one before them goes on", () => {
    const node = startNode();
    assignRow(node, 4);
    expect(node.assignments.stop(1, 2, 1, false).map(({ row }) => row)).toEqual([2, 3]);
    endTask(node.started[0]!);
    endTask(node.started[1]!);
    expect([rowsBegun(node), node.ended, node.assignments.size]).toEqual([[0, 1], [], 0]);
  });

  it("go back with one that its spawner dropped before it began", () => {
    const node = startNode();
    assignRow(node, 3);
    node.started[0]!.owner.dropped(node.started[0]!);
    expect(node.sent).toEqual([{ t: "returned", parts: [{ run: 1, ranges: [0, 3] }] }]);
    expect(node.assignments.size).toBe(0);
  });
});
