import { describe, expect, it } from "vitest";
import { apply } from "../../../src/core/apply.ts";
import { packr } from "../../../src/core/codec.ts";
import { Ending, type Event } from "../../../src/core/events.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { type Run, createRun } from "../../../src/core/run.ts";
import { NO_EFFECTS, createState } from "../../../src/core/state.ts";
import { Task } from "../../../src/core/states.ts";
import { Flag, touch } from "../../../src/core/table.ts";
import type { ServerMessage } from "../../../src/protocol/messages.ts";
import type { AgentLink } from "../../../src/agent-links/agents.ts";
import { sendAssignments } from "../../../src/agent-links/assignments.ts";
import { defineSoon } from "../../../src/agent-links/definitions.ts";
import { resultsKept, tellInPassing } from "../../../src/agent-links/in-passing.ts";
import { after, group, spec } from "../core/model.ts";

/** An agent that records what it receives. */
const listener = (id: number): { link: AgentLink; heard: ServerMessage[] } => {
  const heard: ServerMessage[] = [];
  const channel: AgentLink["channel"] = {
    send: (message) => void heard.push(message),
    sendFrame: (frame) => void heard.push(packr.unpack(frame.subarray(4)) as ServerMessage),
    close: () => undefined,
    destroy: () => undefined,
    trust: () => undefined,
    silence: () => 0,
    buffered: 0,
    open: true,
  };
  const link: AgentLink = {
    id,
    channel,
    heartbeatMs: 5000,
    suspectSince: undefined,
    draining: false,
    told: false,
    endsAt: Infinity,
    defined: new Map(),
    singles: false,
    alike: false,
    durable: 0,
    over: [],
    asked: false,
    tails: new Map(),
    limitsOf: () => ({ perTask: 1, perRun: 1, over: false }),
  };
  return { link, heard };
};

const hold = (run: Run, agent: number, rows: readonly number[]): void => {
  for (const row of rows) {
    const page = touch(run.table, row);
    page.agent[row % run.table.pageRows] = agent;
    page.attempt[row % run.table.pageRows] = 1;
    page.state[row % run.table.pageRows] = Task.SCHEDULING;
  }
};

describe("what an agent is told", () => {
  it("of tasks handed ahead: each by itself, behind what it waits for, or like any other once that is done", () => {
    const state = createState();
    const groups = [0, 1, 2, 3].map((i) => group(`t${i}`, 1, { after: i === 0 ? [] : after(i - 1) }));
    const run = createRun(1, "u", spec([...groups, group("other", 1, { after: after(1) })]), 0, new Map());
    state.runs.set(1, run);
    hold(run, 7, [0]);
    const table = touch(run.table, 0);
    for (const row of [1, 2]) {
      table.agent[row] = 7;
      table.attempt[row] = 1;
    }
    const { link, heard } = listener(7);
    // row 3 came back meanwhile
    sendAssignments(state, link, [{ run: 1, ranges: [0, 1] }], [{ run: 1, ranges: [1, 3] }]);
    const assigned = { t: "assign", run: 1, attempts: 1 };
    expect(heard.filter(({ t }) => t === "assign")).toEqual([
      { ...assigned, group: 0, ranges: [0, 1], followed: true },
      { ...assigned, group: 1, ranges: [1, 1], behind: { row: 0, attempt: 1, only: true } },
      { ...assigned, group: 2, ranges: [2, 1], behind: { row: 1, attempt: 1, only: false } },
    ]);
    heard.length = 0;
    table.state[1] = Task.SCHEDULING;
    sendAssignments(state, link, [], [{ run: 1, ranges: [1, 1] }]);
    expect(heard).toEqual([{ ...assigned, group: 1, ranges: [1, 1], followed: true }]);
  });

  it("of one handed ahead behind a task that failed before this was on disk: to give it back, not to begin it", () => {
    const state = createState();
    const commit = (event: Event): void => apply(state, event, NO_EFFECTS);
    const agent = { uuid: "a", pilot: 1, host: "h", version: "1", resources: { cpus: FRACTION }, output: "", seq: 0 };
    commit({ type: "agent.joined", at: 1, agent: 1, ...agent });
    commit({
      type: "run.opened",
      at: 1,
      run: 1,
      uuid: "u",
      spec: spec([group("a", 1), group("b", 1, { after: after(0) })]),
    });
    commit({ type: "run.committed", at: 1, run: 1 });
    const [first, second] = [0, 1].map((row) => ({ run: 1, ranges: [row, 1] }));
    commit({ type: "tasks.assigned", at: 1, agent: 1, parts: [first!], ahead: [second!] });
    const facts = { attempt: 1, ending: Ending.EXIT, code: 9, started: 1, finished: 2, outAt: -1, outBytes: 0 };
    const parts = [{ run: 1, rows: Uint32Array.of(0), ...facts, errBytes: 0, details: [] }];
    commit({ type: "tasks.ended", at: 2, agent: 1, seq: 1, parts });
    const { link, heard } = listener(1);
    sendAssignments(state, link, [], [second!]);
    const assigned = { t: "assign", run: 1, attempts: 1, group: 1, ranges: [1, 1] };
    expect(heard.filter(({ t }) => t === "assign")).toEqual([
      { ...assigned, behind: { row: 1, attempt: 0, only: false } },
    ]);
  });

  it("of its tasks: the template once, and all rows of a group in one message", () => {
    const state = createState();
    const run = createRun(1, "u", spec([group("a", 100), group("b", 10)]), 0, new Map());
    state.runs.set(1, run);
    hold(run, 7, [0, 1, 2, 3, 50, 51, 100]);
    const { link, heard } = listener(7);
    // row 4 belongs to another agent by now
    sendAssignments(state, link, [{ run: 1, ranges: [0, 5, 50, 2, 100, 1] }]);
    expect(heard.map(({ t }) => t)).toEqual(["define", "assign", "define", "assign"]);
    expect(heard[1]).toMatchObject({ group: 0, ranges: [0, 4, 50, 2], attempts: 1 });
    expect(heard[3]).toMatchObject({ group: 1, ranges: [100, 1] });
    sendAssignments(state, link, [{ run: 1, ranges: [50, 1] }]);
    expect(heard[4]).toMatchObject({ t: "assign", ranges: [50, 1] });
  });

  it("of its tasks: the number of each attempt where they differ, over pages and gaps", () => {
    const state = createState();
    const run = createRun(1, "u", spec([group("a", 20_000)]), 0, new Map());
    state.runs.set(1, run);
    const last = run.table.pageRows - 1;
    hold(run, 7, [last - 2, last - 1, last + 1, last + 2, last + 3]);
    touch(run.table, last + 2).attempt[(last + 2) % run.table.pageRows] = 3;
    const { link, heard } = listener(7);
    sendAssignments(state, link, [{ run: 1, ranges: [last - 2, 4, last + 2, 2] }]);
    expect(heard.at(-1)).toMatchObject({ ranges: [last - 2, 2, last + 1, 3], attempts: [1, 1, 1, 3, 1] });
  });

  it("of a graph: templates together, as many as make no large message, and none twice", () => {
    const state = createState();
    const command = ["x".repeat(400_000)];
    const groups = Array.from({ length: 1500 }, (_, i) => group(`t${i}`, 1, i >= 1400 && i < 1405 ? { command } : {}));
    const run = createRun(1, "u", { ...spec(groups), env: { KEY: "v" } }, 0, new Map());
    state.runs.set(1, run);
    const rows = Array.from({ length: 1500 }, (_, i) => i);
    hold(run, 7, rows);
    const { link, heard } = listener(7);
    sendAssignments(state, link, [{ run: 1, ranges: [5, 1] }]);
    sendAssignments(state, link, [{ run: 1, ranges: [0, 1500] }]);
    const defined = heard.flatMap((message) => (message.t === "define" ? [message] : []));
    expect(defined.map(({ groups: of }) => of.length)).toEqual([1, 1, 1024, 377, 97]);
    expect(defined.filter(({ env }) => env !== undefined)).toEqual([defined[0]]);
    const names = defined.flatMap(({ groups: of }) => of.map(({ name }) => name));
    expect(names.toSorted()).toEqual(groups.map(({ name }) => name).toSorted());
    for (const row of rows) {
      const told = heard.findIndex(
        (message) => message.t === "define" && message.groups.some((of) => of.index === row),
      );
      expect(told).toBeLessThan(heard.findIndex((message) => message.t === "assign" && message.group === row));
    }
  });

  it("of a graph, if it takes single tasks together: all in one message, in their order among others", () => {
    const state = createState();
    const groups = [...[0, 1, 2].map((i) => group(`t${i}`, 1)), group("many", 3), group("last", 1)];
    const run = createRun(1, "u", spec(groups), 0, new Map());
    state.runs.set(1, run);
    hold(run, 7, [0, 2, 3, 4, 6]);
    const { link, heard } = listener(7);
    link.singles = true;
    // row 1 was cancelled meanwhile
    sendAssignments(state, link, [{ run: 1, ranges: [0, 7] }]);
    expect(heard.filter(({ t }) => t !== "define")).toEqual([
      { t: "singles", run: 1, groups: [0, 2], rows: [0, 2], attempts: 1 },
      { t: "assign", run: 1, group: 3, ranges: [3, 2], attempts: 1 },
      { t: "singles", run: 1, groups: [4], rows: [6], attempts: 1 },
    ]);
    heard.length = 0;
    touch(run.table, 2).flags[2] = Flag.ALONE;
    touch(run.table, 0).attempt[0] = 2;
    sendAssignments(state, link, [{ run: 1, ranges: [0, 1, 2, 1, 6, 1] }]);
    expect(heard).toEqual([
      { t: "singles", run: 1, groups: [0], rows: [0], attempts: 2 },
      { t: "assign", run: 1, group: 2, ranges: [2, 1], attempts: 1, alone: [2] },
      { t: "singles", run: 1, groups: [4], rows: [6], attempts: 1 },
    ]);
  });

  it("of single tasks handed ahead, if it takes them together: what each lies behind", () => {
    const state = createState();
    const groups = [0, 1, 2].map((i) => group(`t${i}`, 1, { after: i === 0 ? [] : after(i - 1) }));
    const run = createRun(1, "u", spec(groups), 0, new Map());
    state.runs.set(1, run);
    hold(run, 7, [0]);
    const table = touch(run.table, 0);
    for (const row of [1, 2]) [table.agent[row], table.attempt[row]] = [7, row];
    const { link, heard } = listener(7);
    link.singles = true;
    sendAssignments(state, link, [{ run: 1, ranges: [0, 1] }], [{ run: 1, ranges: [1, 2] }]);
    expect(heard.filter(({ t }) => t !== "define")).toEqual([
      { t: "singles", run: 1, groups: [0], rows: [0], attempts: 1, followed: true },
      {
        t: "singles",
        run: 1,
        groups: [1, 2],
        rows: [1, 2],
        attempts: [1, 2],
        behind: [
          { row: 0, attempt: 1, only: true },
          { row: 1, attempt: 1, only: true },
        ],
      },
    ]);
    heard.length = 0;
    table.state[1] = Task.SCHEDULING;
    sendAssignments(state, link, [], [{ run: 1, ranges: [1, 1] }]);
    expect(heard).toEqual([{ t: "singles", run: 1, groups: [1], rows: [1], attempts: 1, followed: true }]);
  });

  it("the same of each template, whoever was told before", () => {
    const state = createState();
    const run = createRun(1, "u", { ...spec([group("a", 8), group("b", 8)]), env: { KEY: "v" } }, 0, new Map());
    state.runs.set(1, run);
    const told = [1, 2, 3].map((id) => {
      const { link, heard } = listener(id);
      hold(run, id, [id, 8 + id]);
      // the run's environment goes with the first of its templates only
      sendAssignments(state, link, [{ run: 1, ranges: [id, 1, 8 + id, 1] }]);
      return heard.filter(({ t }) => t === "define");
    });
    expect(told[1]).toEqual(told[0]);
    expect(told[2]).toEqual(told[0]);
    expect(told[0]).toMatchObject([{ env: { KEY: "v" }, groups: [{ name: "a" }] }, { groups: [{ name: "b" }] }]);
    expect(told[0]![1]).not.toHaveProperty("env.KEY");
  });

  it("of a run that it has heard of, before its tasks are on disk: what they are, once, and nothing about who has them", () => {
    const state = createState();
    const groups = Array.from({ length: 8 }, (_, i) => group(`t${i}`, 1));
    const run = createRun(1, "u", spec(groups), 0, new Map());
    state.runs.set(1, run);
    hold(run, 7, [0, 1, 2, 3, 4, 5]);
    const { link, heard } = listener(7);
    link.singles = true;
    const defined = () =>
      heard.flatMap((message) => (message.t === "define" ? message.groups.map((of) => of.index) : []));
    // it might be the first to hear of a run that is not on disk
    defineSoon(state, link, [{ run: 1, ranges: [0, 3] }]);
    expect(heard).toEqual([]);
    sendAssignments(state, link, [{ run: 1, ranges: [0, 1] }]);
    heard.length = 0;
    defineSoon(state, link, [
      { run: 1, ranges: [0, 4, 5, 1] },
      { run: 2, ranges: [0, 4] },
    ]);
    expect(heard.every(({ t }) => t === "define")).toBe(true);
    expect(defined()).toEqual([1, 2, 3, 5]);
    heard.length = 0;
    defineSoon(state, link, [{ run: 1, ranges: [0, 6] }]);
    sendAssignments(state, link, [{ run: 1, ranges: [1, 5] }]);
    expect(defined()).toEqual([4]);
    expect(heard.at(-1)).toMatchObject({ t: "singles", rows: [1, 2, 3, 4, 5] });
    // the run was over in between: it is told everything again
    link.defined.delete(1);
    heard.length = 0;
    defineSoon(state, link, [{ run: 1, ranges: [1, 5] }]);
    expect(heard).toEqual([]);
    sendAssignments(state, link, [{ run: 1, ranges: [1, 5] }]);
    expect(heard[0]).toMatchObject({ t: "define", env: {} });
    expect(defined()).toEqual([1, 2, 3, 4, 5]);
  });

  it("of groups whose ends nobody waits for one by one: many tasks, no other that waits, nothing that other agents share", () => {
    const state = createState();
    const licensed = { resources: { cpus: 10_000, licence: 10_000 } };
    const groups = [
      group("many", 1000),
      group("few", 10),
      group("awaited", 1000),
      group("after", 1000, { after: after(2) }),
      group("licensed", 1000, licensed),
    ];
    const run = createRun(1, "u", spec(groups), 0, new Map());
    state.runs.set(1, run);
    const rows = run.groups.map(({ first }) => first);
    hold(run, 1, rows);
    const { link, heard } = listener(1);
    sendAssignments(state, link, [{ run: 1, ranges: rows.flatMap((row) => [row, 1]) }]);
    const defined = heard.flatMap((message) => (message.t === "define" ? message.groups : []));
    expect(defined.filter(({ patient }) => patient === true).map(({ name }) => name)).toEqual(["many", "after"]);
  });

  it("in passing: the last of its results on disk and the runs that are over, once", () => {
    const { link, heard } = listener(1);
    tellInPassing(link);
    expect(heard).toEqual([]);
    resultsKept(link, 4, false);
    resultsKept(link, 5, false);
    link.over = [2, 3];
    tellInPassing(link);
    tellInPassing(link);
    expect(heard).toEqual([
      { t: "ack", seq: 5 },
      { t: "forget", run: 2 },
      { t: "forget", run: 3 },
    ]);
    // a leaving agent waits for it
    link.draining = true;
    resultsKept(link, 6, false);
    expect(heard.at(-1)).toEqual({ t: "ack", seq: 6 });
    // nor does one whose only task that was
    link.draining = false;
    resultsKept(link, 7, true);
    expect(heard.at(-1)).toEqual({ t: "ack", seq: 7 });
  });
});
