import { describe, expect, it } from "vitest";
import { FRACTION } from "../../../src/core/resources.ts";
import { type Group, shapeOf } from "../../../src/core/run.ts";
import { type Candidate, type WaitingTasks, demandOn, slotsOf } from "../../../src/fleet/demand.ts";
import { group } from "../core/model.ts";

const queue = (name: string, cpus: number | undefined, change: Partial<Candidate> = {}): Candidate => ({
  cluster: "hpc",
  queue: name,
  nodes: 1,
  offer: cpus === undefined ? undefined : { cpus: cpus * FRACTION },
  untold: false,
  lifetime: Infinity,
  max: 10,
  unknownTaskDuration: 60,
  failing: false,
  living: false,
  ...change,
});

const tasks = (waiting: number, cpus: number, spec: Partial<Group["spec"]> = {}): WaitingTasks => {
  const of = group("t", 1, { cluster: "hpc", ...spec });
  return { shape: shapeOf(of, { cpus: cpus * FRACTION }), waiting, sample: { tasks: 1, knownMs: 2000, unknown: 0 } };
};

const on = (waiting: WaitingTasks[], fleets: Candidate[], cluster = "local"): number[][] =>
  demandOn(waiting, fleets, cluster).map((list) => list.map((each) => each.waiting));

describe("fleet.demandOn", () => {
  it("counts slots per shape: of one node, and of all", () => {
    expect(slotsOf(tasks(1, 2).shape, queue("q", 9))).toBe(4);
    expect(slotsOf(tasks(1, 2).shape, queue("q", 9, { nodes: 3 }))).toBe(12);
    expect(slotsOf(tasks(1, 16).shape, queue("q", 9, { nodes: 3 }))).toBe(0);
    expect(slotsOf(tasks(1, 2).shape, queue("q", undefined, { nodes: 3 }))).toBe(3);
  });

  it("what a queue does not declare is no limit until an agent has told what there is", () => {
    const shape = shapeOf(group("t", 1), { cpus: FRACTION, mem: 2 ** 30 });
    expect(slotsOf(shape, queue("q", 4, { untold: true }))).toBe(4);
    expect(slotsOf(shape, queue("q", 4))).toBe(0);
    expect(slotsOf(shape, queue("q", 4, { untold: true, offer: { cpus: 4 * FRACTION, mem: 2 ** 31 } }))).toBe(2);
  });

  it("tasks of many ranks need their pilot whole", () => {
    const ranks = (count: number, nodes?: number) =>
      tasks(1, 1, { ranks: { count, by: "agents", ...(nodes === undefined ? {} : { nodes }) } }).shape;
    expect(slotsOf(ranks(8), queue("q", 4, { nodes: 4 }))).toBe(2);
    expect(slotsOf(ranks(8, 2), queue("q", 4, { nodes: 4 }))).toBe(2);
    expect(slotsOf(ranks(4, 4), queue("q", 4, { nodes: 4 }))).toBe(4);
    expect(slotsOf(ranks(4, 8), queue("q", 4, { nodes: 4 }))).toBe(0);
  });

  it("a queue that cannot run a shape is asked for none of it", () => {
    expect(on([tasks(5, 8), tasks(7, 1)], [queue("small", 4), queue("large", 8)])).toEqual([[7], [5]]);
  });

  it("several queues: the first takes what it could ever run at once, the next one the rest", () => {
    expect(on([tasks(50, 1)], [queue("a", 4), queue("b", 4)])).toEqual([[40], [10]]);
    expect(on([tasks(500, 1)], [queue("a", 4), queue("b", 4)])).toEqual([[40], [460]]);
  });

  it("a queue whose pilots do not start comes last", () => {
    expect(on([tasks(50, 1)], [queue("a", 4, { failing: true }), queue("b", 4)])).toEqual([[10], [40]]);
  });

  it("a named queue is the only one, a task without cluster belongs to the default", () => {
    expect(on([tasks(5, 1, { queue: "b" })], [queue("a", 4), queue("b", 4)])).toEqual([[], [5]]);
    const anywhere = { ...tasks(3, 1), shape: shapeOf(group("t", 1), { cpus: FRACTION }) };
    expect(on([anywhere], [queue("a", 4)])).toEqual([[]]);
    expect(on([anywhere], [queue("a", 4)], "hpc")).toEqual([[3]]);
  });

  it("a time-request longer than any pilot lives is no demand", () => {
    expect(on([tasks(1, 1, { timeRequest: 7200 })], [queue("a", 4, { lifetime: 3600 })])).toEqual([[]]);
  });

  it("expects what is known, and the configured time of the others", () => {
    const mixed = { ...tasks(10, 1), sample: { tasks: 10, knownMs: 50_000, unknown: 5 } };
    expect(demandOn([mixed], [queue("a", 4)], "hpc")[0]).toMatchObject([{ expected: 35 }]);
  });

  it("row 001-36: tasks that wait for what a whole machine or cluster shares need no further pilot", () => {
    const shared = (free: number, living: boolean, waiting = 20) =>
      demandOn([tasks(waiting, 1)], [queue("q", 4, { living })], "local", { cpus: free * FRACTION }).map((list) =>
        list.map((each) => each.waiting),
      );
    expect(shared(0, true)).toEqual([[]]);
    expect(shared(-2, true)).toEqual([[]]);
    expect(shared(3, true)).toEqual([[3]]);
    // without any pilot they would wait for ever behind others that have one
    expect(shared(0, false)).toEqual([[1]]);
    expect(shared(3, false, 2)).toEqual([[2]]);
  });

  it("what shapes take of what is shared is gone for the next; ranks take all of theirs", () => {
    const living = [queue("q", 4, { nodes: 2, living: true })];
    const gang = tasks(3, 1, { ranks: { count: 4, by: "agents" } });
    expect(
      demandOn([tasks(3, 1), gang], living, "local", { cpus: 8 * FRACTION }).map((list) =>
        list.map((each) => each.waiting),
      ),
    ).toEqual([[3, 1]]);
  });
});
