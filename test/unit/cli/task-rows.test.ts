import { describe, expect, it } from "vitest";
import type { TaskRowView } from "../../../src/api/task-table.ts";
import { JOBLOG_HEAD, joblogLine } from "../../../src/cli/joblog.ts";
import { PLAIN } from "../../../src/cli/render/style.ts";
import { jobsTable } from "../../../src/cli/render/jobs.ts";
import { runsTable } from "../../../src/cli/render/runs.ts";
import { clustersTable, pilotsTable, statusScreen } from "../../../src/cli/render/status.ts";
import { layout } from "../../../src/cli/render/table.ts";
import { SHOWN, csvCell, taskColumns } from "../../../src/cli/render/task-rows.ts";
import { columnsOf } from "../../../src/cli/render/text.ts";
import { parseStates } from "../../../src/cli/state-options.ts";
import { stateWord, statesMeant } from "../../../src/core/state-words.ts";
import { LAUNCH_STATES, PILOT_STATES, TASK_STATES } from "../../../src/core/states.ts";
import { sampleRun } from "./sample.ts";

const row = (more: Partial<TaskRowView> = {}): TaskRowView => ({
  id: "3.17",
  index: 17,
  name: "dock[ligand-17]",
  group: "dock",
  item: "ligand-17",
  state: "FAILED",
  exitCode: 2,
  signal: null,
  reason: "exit code 2",
  attempts: 1,
  lost: 0,
  host: "n0123.cluster.example",
  agent: "4",
  pilot: "2",
  started: "2026-11-15T10:00:02.000Z",
  finished: "2026-11-15T10:00:05.500Z",
  wall: 3.5,
  cpuUser: 3.1,
  cpuSystem: 0.2,
  peakMemory: 200 * 2 ** 20,
  readBytes: 4096,
  writtenBytes: 0,
  stdoutBytes: 10,
  stderrBytes: 5,
  command: ["sh", "-c", "./dock 17\nexit 2"],
  ...more,
});

const widest = (text: string): number => Math.max(...text.split("\n").map(columnsOf));
const NOW = Date.parse("2026-11-15T10:01:01Z");

describe("words for states", () => {
  it("are of a few kinds, and every state has one", () => {
    expect(TASK_STATES.map(stateWord).filter((word) => /[A-Z_]/.test(word))).toEqual([]);
    expect(PILOT_STATES.map(stateWord).filter((word) => /[A-Z_]/.test(word))).toEqual([]);
    expect(["NEW", "TMGR_SCHEDULING_PENDING", "TMGR_SCHEDULING", "AGENT_EXECUTING"].map(stateWord)).toEqual([
      "waiting",
      "ready",
      "starting",
      "running",
    ]);
    expect(LAUNCH_STATES.map(stateWord)).toEqual(["waiting", "running", "done", "failed", "cancelled", "lost"]);
    expect(stateWord("constructor")).toBe("constructor");
  });

  it("and names in JSON are both taken by --state", () => {
    expect(statesMeant("Running", TASK_STATES)).toEqual(["AGENT_EXECUTING"]);
    expect(statesMeant("AGENT_EXECUTING", TASK_STATES)).toEqual(["AGENT_EXECUTING"]);
    for (const word of ["cancelled", "canceled", "CANCELED"])
      expect(statesMeant(word, TASK_STATES), word).toEqual(["CANCELED"]);
    expect(statesMeant("staging", TASK_STATES)).toHaveLength(8);
    expect(parseStates(["failed", "done", "FAILED"], TASK_STATES, "a state")).toEqual(["FAILED", "DONE"]);
    expect(() => parseStates(["faild"], TASK_STATES, "the state of a task")).toThrow(
      expect.objectContaining({ facts: { detail: expect.stringContaining("did you mean failed?") as string } }),
    );
  });
});

describe("tables on a terminal of 80 columns", () => {
  const columns = SHOWN.map((name) => taskColumns(PLAIN)[name]);
  const tasks = [row(), row({ id: "3.1000000", name: "x".repeat(90), host: null, reason: "y".repeat(200) })];

  it("leave out what matters least, and never wrap", () => {
    const { head, lines } = layout(tasks, columns, 80);
    expect(widest([head, ...lines(tasks)].join("\n"))).toBeLessThanOrEqual(80);
    for (const title of ["TASK", "NAME", "STATE", "TIME", "END"]) expect(head).toContain(title);
    expect(head).not.toContain("STARTED");
    // of rows that come later, wider ones are cut too
    expect(widest(lines([row({ id: "3.17", name: "z".repeat(300), wall: 1e6 })]).join("\n"))).toBeLessThanOrEqual(80);
    const many = sampleRun({ total: 10_000_000, counts: { DONE: 9_999_999, CANCELED: 1 }, name: "n".repeat(60) });
    expect(widest(runsTable([many], PLAIN, NOW, 80))).toBeLessThanOrEqual(80);
    const pilot = {
      id: "1234",
      cluster: "karolina-long-name",
      queue: "qcpu_preempt",
      state: "PMGR_ACTIVE" as const,
      draining: true,
      nativeId: "12345678.infra-pbs",
      agents: [],
      running: 128,
      requested: "2026-11-15T09:00:00Z",
      active: "2026-11-15T10:00:00Z",
      ended: null,
      ends: "2026-11-16T10:00:00Z",
      waiting: null,
      reason: "w".repeat(100),
    };
    expect(widest(pilotsTable([pilot as never], PLAIN, NOW, 80))).toBeLessThanOrEqual(80);
    const job = {
      kind: "task" as const,
      id: "3.1000000",
      name: "n".repeat(40),
      state: "pending" as const,
      since: "2026-11-15T10:00:00Z",
      cluster: "karolina",
      queue: "qcpu_preempt",
      nativeId: "12345678.infra-pbs",
      jobName: "slipway-0123456789ab",
      reason: "Resources",
    };
    expect(widest(jobsTable([job as never], PLAIN, NOW, 80))).toBeLessThanOrEqual(80);
    const cluster = {
      name: "c".repeat(50),
      type: "slurm",
      default: true,
      queues: ["a".repeat(50), "b"],
      resources: {},
    };
    expect(widest(clustersTable([cluster as never], 80))).toBeLessThanOrEqual(80);
    const server = {
      state: "running",
      detail: null,
      url: "https://127.0.0.1:40123",
      listens: { host: "127.0.0.1", reason: "all its work is on this machine; --host lets other machines in" },
      pid: 1234,
      host: "login1",
      home: "/home/someone/.slipway",
      version: "0.1.0",
      started: "2026-11-15T10:00:00Z",
    };
    const status = { server, fleets: [], pilots: [pilot], runs: [many] };
    expect(widest(statusScreen(status as never, PLAIN, NOW, 80))).toBeLessThanOrEqual(80);
  });

  it("elsewhere nothing is cut, and later cells push their line to the right", () => {
    const { head, lines } = layout([row()], columns);
    expect(head).toContain("STARTED");
    expect(lines(tasks)[1]).toContain("x".repeat(90));
    expect(lines(tasks)[1]).toContain("y".repeat(200));
  });
});

describe("files", () => {
  it("CSV cells are quoted where they must be", () => {
    expect([csvCell(null), csvCell(1.5), csvCell("a b"), csvCell('a,"b"'), csvCell("x\ny")]).toEqual([
      "",
      "1.5",
      "a b",
      '"a,""b"""',
      '"x\ny"',
    ]);
  });

  it("a joblog's lines are what GNU parallel's own reader takes, then ours", () => {
    expect(JOBLOG_HEAD.split("\t").slice(0, 9).join(" ")).toBe(
      "Seq Host Starttime JobRuntime Send Receive Exitval Signal Command",
    );
    // the expression that parallel reads its log with
    const READER = /^(\d+)(?:\t[^\t]+){5}\t(\d+)\t(\d+)\t(.+)$/;
    const line = joblogLine(row(), 18);
    expect(READER.exec(line)?.slice(1, 4)).toEqual(["18", "2", "0"]);
    expect(line.split("\t").slice(0, 9)).toEqual([
      "18",
      "n0123.cluster.example",
      "1794736802.000",
      "3.500",
      "0",
      "15",
      "2",
      "0",
      "sh -c './dock 17\\nexit 2'",
    ]);
    expect(line.split("\t")).toHaveLength(JOBLOG_HEAD.split("\t").length);
    const killed = joblogLine(
      row({ exitCode: null, signal: "SIGKILL", host: null, reason: "a\tb\nc", command: ["a\tb"] }),
      1,
    );
    expect(READER.exec(killed)?.slice(1, 4)).toEqual(["1", "0", "9"]);
    expect(killed.split("\t")).toHaveLength(JOBLOG_HEAD.split("\t").length);
    expect(READER.exec(joblogLine(row({ exitCode: null }), 1))?.[2], "never started").toBe("255");
  });
});
