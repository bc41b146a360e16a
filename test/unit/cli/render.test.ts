import { expect, test } from "vitest";
import { eventLine } from "../../../src/cli/render/events.ts";
import { debugText, errorText } from "../../../src/cli/render/error.ts";
import { outcomes, runScreen, elapsed, runsTable } from "../../../src/cli/render/runs.ts";
import { clusterScreen, statusScreen } from "../../../src/cli/render/status.ts";
import { isUnicode, PLAIN, styleFor, wantsColor } from "../../../src/cli/render/style.ts";
import { runSummary } from "../../../src/cli/render/summary.ts";
import { table } from "../../../src/cli/render/table.ts";
import { taskScreen } from "../../../src/cli/render/task.ts";
import {
  clipped,
  columnsOf,
  count,
  duration,
  localTime,
  printable,
  commandLine,
} from "../../../src/cli/render/text.ts";
import { SlipwayError } from "../../../src/errors.ts";
import { sampleRun, sampleTask } from "./sample.ts";

const NOW = Date.parse("2026-11-15T10:01:01.000Z");
const at = (iso: string): string => localTime(iso);

test("durations are said as people say them", () => {
  expect([0, 0.424, 1, 9.9, 12.4, 59.6, 185, 7620, 273_600, -1, Infinity].map(duration)).toEqual([
    "0 ms",
    "0.42 s",
    "1.0 s",
    "9.9 s",
    "12 s",
    "1m 00s",
    "3m 05s",
    "2h 07m",
    "3d 04h",
    "?",
    "?",
  ]);
  expect([0, 999, 1000, 1_234_567].map(count)).toEqual(["0", "999", "1,000", "1,234,567"]);
});

test("times are shown in the reader's zone and hostile text cannot steer the terminal", () => {
  expect(localTime("2026-11-15T10:00:00.000Z")).toMatch(/^2026-11-1\d \d\d:00:00$/);
  expect(localTime(null)).toBe("-");
  expect(printable("a\u001b[2Jb\nc\td\u202e")).toBe("a\\u001b[2Jb\\nc d\\u202e");
  expect(commandLine(["./dock", "it's", "a b", ""])).toBe("./dock 'it'\\''s' 'a b' ''");
});

test("widths count columns, not characters", () => {
  expect(columnsOf("日本")).toBe(4);
  expect(columnsOf("\u001b[31mred\u001b[39m")).toBe(3);
  expect(columnsOf("e\u0301")).toBe(1);
  expect(columnsOf("👩‍👩‍👧‍👦")).toBe(2);
  expect(columnsOf("🇩🇪")).toBe(2);
  expect(clipped("docking", 5)).toBe("dock…");
  expect(clipped("日本語", 5)).toBe("日本…");
  expect(clipped("abc", 0)).toBe("");
});

test("tables are aligned, hold one line a row and shrink to the terminal", () => {
  const rows = [
    { id: 9, name: "a long name indeed" },
    { id: 10, name: "two\nlines" },
  ];
  const columns = [
    { title: "ID", value: (row: (typeof rows)[0]) => String(row.id), right: true },
    { title: "NAME", value: (row: (typeof rows)[0]) => row.name, shrinksTo: 8 },
  ];
  expect(table(rows, columns)).toBe("ID  NAME\n 9  a long name indeed\n10  two\\nlines");
  expect(table(rows, columns, 14)).toBe("ID  NAME\n 9  a long na…\n10  two\\nlines");
});

test("list shows one line a run", () => {
  const done = sampleRun({ id: 2, state: "DONE", counts: { DONE: 1000 }, finished: "2026-11-15T10:00:11.000Z" });
  expect(runsTable([sampleRun(), done], PLAIN, NOW)).toBe(
    [
      "RUN  NAME     STATE    TASKS   DONE  FAILED  CANCELLED  RUNNING  SUBMITTED              TIME     ETA",
      `  3  docking  running  1,000    400       2          0        8  ${at("2026-11-15T10:00:00Z")}  1m 00s  1m 15s`,
      `  2  docking  done     1,000  1,000       0          0        0  ${at("2026-11-15T10:00:00Z")}    10 s       -`,
    ].join("\n"),
  );
});

test("outcomes leave handlers that were not needed aside", () => {
  const run = sampleRun({ counts: { DONE: 5, CANCELED: 3 }, total: 8, unneeded: 2, state: "CANCELED" });
  expect(outcomes(run, PLAIN)).toBe("5 done, 1 cancelled, 2 not needed");
});

test("rows 001-12 and 001-65: show RUN has the time to go with its range and the date, or why it is not known", () => {
  const etaRange = { p10: "2026-11-15T10:02:00Z", p50: "2026-11-15T10:02:15Z", p90: "2026-11-15T10:03:00Z" };
  expect(runScreen(sampleRun({ etaRange }), [], PLAIN, NOW)).toContain(
    `to go      1m 15s (with 80 %: 1m 00s to 2m 00s), until ${at("2026-11-15T10:02:15Z")}`,
  );
  expect(runScreen(sampleRun({ eta: null, etaReason: "it waits for run 2" }), [], PLAIN, NOW)).toContain(
    "to go      not known: it waits for run 2",
  );
});

test("show RUN has groups and the first failures", () => {
  const run = sampleRun({
    total: 3,
    counts: { DONE: 1, FAILED: 1, CANCELED: 1 },
    state: "FAILED",
    finished: "2026-11-15T10:00:31.000Z",
    retries: 2,
    groups: [
      { name: "dock", total: 2, counts: { DONE: 1, FAILED: 1 }, after: [] },
      { name: "merge", total: 1, counts: { CANCELED: 1 }, after: ["dock"] },
    ],
  });
  expect(runScreen(run, [sampleTask()], PLAIN, NOW)).toBe(
    [
      "run 3  docking  failed",
      "",
      "tasks      3: 1 done, 1 failed, 1 cancelled",
      "numbered   3.1 to 3.3",
      `submitted  ${at("2026-11-15T10:00:00Z")}`,
      `started    ${at("2026-11-15T10:00:01Z")}`,
      `finished   ${at("2026-11-15T10:00:31Z")}`,
      "time       30 s",
      "retries    2",
      "",
      "GROUP  TASKS  DONE  FAILED  CANCELLED  RUNNING  AFTER",
      "dock       2     1       1          0        0",
      "merge      1     0       0          1        0  dock",
      "",
      "1 failed task:",
      "  3.17  dock: exit code 2",
      "        no such ligand: 17",
    ].join("\n"),
  );
});

test("show RUN.TASK has command, resources, attempts and the end of stderr", () => {
  expect(taskScreen(sampleTask(), PLAIN, NOW)).toBe(
    [
      "task 3.17  dock  failed",
      "",
      "command    ./dock --ligand 'it'\\''s 17'",
      "item       17",
      "directory  /work/dock",
      "resources  cpus 2, mem 500M",
      "exit code  2",
      "stdout     0B",
      "stderr     31B",
      "",
      "ATTEMPT  STATE   WHERE  PILOT  STARTED               TIME  END     REASON",
      `      1  failed  node1  p1     ${at("2026-11-15T10:00:02Z")}  3.5 s  exit 2`,
      "",
      "last lines of stderr:",
      "  reading",
      "  no such ligand: 17",
    ].join("\n"),
  );
});

test("show RUN.TASK lists the attempts that are kept and says which are not", () => {
  const [one] = sampleTask().attempts;
  const attempts = [1, 2, 3, 13, 14, 15, 16, 17].map((n) => ({ ...one!, n }));
  const [lost] = [{ ...one!, state: "LOST" as const, lost: true, exitCode: null, reason: "the node died" }];
  const lines = (task: Parameters<typeof taskScreen>[0]): string[] => taskScreen(task, PLAIN, NOW).split("\n");
  expect(lines(sampleTask({ attempts, attemptsDropped: 9 }))).toContain("attempts 4 to 12 are no longer kept (9)");
  const eight = attempts.map((attempt, i) => ({ ...attempt, n: i < 3 ? i + 1 : i + 2 }));
  expect(lines(sampleTask({ attempts: eight, attemptsDropped: 1 }))).toContain("attempt 4 is no longer kept");
  expect(lines(sampleTask({ attempts: [lost!, { ...one!, n: 2 }] })).join("\n")).toMatch(
    /1 {2}lost {4}node1 .* - +the node died\n +2 {2}failed /,
  );
});

test("show RUN.TASK says how much memory each attempt had, and who saw it, where anybody did", () => {
  const peakMemory = { bytes: 203 * 2 ** 20, source: "watch" as const };
  const [one] = sampleTask().attempts;
  const text = taskScreen(sampleTask({ peakMemory, attempts: [one!, { ...one!, n: 2, peakMemory }] }), PLAIN, NOW);
  expect(text).toContain("\npeak memory  203M (watch)\n");
  expect(text).toMatch(/TIME +MEMORY +END .*\n +1 .* 3\.5 s +- +exit 2 *\n +2 .* 3\.5 s +203M \(watch\) +exit 2/);
  const { peakMemory: _unknown, ...ofAnEarlierServer } = sampleTask();
  expect(taskScreen(ofAnEarlierServer as ReturnType<typeof sampleTask>, PLAIN, NOW)).not.toMatch(/memory/i);
});

test("the summary says what failed, why, and what to type next", () => {
  const run = sampleRun({
    state: "FAILED",
    counts: { DONE: 996, FAILED: 4 },
    finished: "2026-11-15T10:00:11.000Z",
    retries: 1,
  });
  expect(runSummary(run, [sampleTask()], PLAIN, NOW, false)).toBe(
    [
      "run 3 docking: failed, 996 done, 4 failed in 10 s, 100 tasks/s",
      "  with 1 retry",
      "  3.17  dock: exit code 2",
      "        no such ligand: 17",
      "  … and 3 more",
      "next:",
      "  slipway why 3.17",
      "  slipway logs 3.17 --stderr",
      "  slipway retry 3 --failed",
    ].join("\n"),
  );
  const good = sampleRun({ state: "DONE", total: 1, counts: { DONE: 1 }, finished: "2026-11-15T10:00:01.250Z" });
  expect(runSummary(good, [], PLAIN, NOW, true)).toBe("run 3 docking: done, 1 done in 0.25 s");
});

test("status is one screen", () => {
  const server = {
    pid: 42,
    host: "login1",
    url: "https://login1:7777",
    started: "2026-11-15T10:00:00.000Z",
    version: "0.1.0",
    home: "/home/me/.slipway",
    epoch: 2,
    state: "running" as const,
    detail: null,
    journalReserve: { bytes: 2 ** 26, of: 2 ** 26, lent: false },
  };
  expect(statusScreen({ server, fleets: [], pilots: [], runs: [] }, PLAIN, NOW)).toBe(
    [
      "server   running",
      "address  https://login1:7777",
      "process  42 on login1",
      "home     /home/me/.slipway",
      "version  0.1.0",
      `started  ${at("2026-11-15T10:00:00Z")} (1m 01s ago)`,
      "",
      "no pilots",
      "",
      "no runs",
    ].join("\n"),
  );
  const cluster = { name: "local", type: "local", default: true, queues: ["default"], resources: { cpus: 8 } };
  expect(clusterScreen(cluster, PLAIN)).toBe("local  local  (default)\nqueues     default\nresources  cpus 8");
});

test("events are one line each", () => {
  const event = { seq: 812, time: "2026-11-15T10:00:00.000Z", event: "task-failed", run: 3, task: "3.17" };
  expect(eventLine({ ...event, detail: { exitCode: 2, reason: "a\nb" } })).toBe(
    `${at(event.time)}  #812  task-failed  3.17  exitCode=2 reason=a\\nb`,
  );
});

test("events show states in people's words", () => {
  const event = { seq: 1, time: "2026-11-15T10:00:00.000Z", event: "task.ended", run: 3, task: "3.1" };
  expect(eventLine({ ...event, detail: { state: "CANCELED", attempt: 1 } })).toContain("state=cancelled attempt=1");
  expect(eventLine({ ...event, detail: { state: "PMGR_ACTIVE_PENDING" } })).toContain("state=queued");
  expect(eventLine({ ...event, detail: { state: "spent", reason: "DONE" } })).toContain("state=spent reason=DONE");
});

test("errors say what is wrong and what to do, stacks only for --debug", () => {
  const error = new SlipwayError("no-such-run", { run: "7\u001b[2J" }, new Error("inner"));
  expect(errorText(error, PLAIN)).toBe(
    "error: there is no run 7\\u001b[2J\n  `slipway list` shows the runs of this home.",
  );
  expect(debugText(error)).toMatch(/SlipwayError: there is no run[^]*caused by Error: inner/);
});

test("colour follows NO_COLOR, TERM, the terminal and --no-color", () => {
  expect(wantsColor({}, true, true)).toBe(true);
  expect(wantsColor({ NO_COLOR: "" }, true, true)).toBe(true);
  expect(wantsColor({ NO_COLOR: "1" }, true, true)).toBe(false);
  expect(wantsColor({ TERM: "dumb" }, true, true)).toBe(false);
  expect(wantsColor({}, false, true)).toBe(false);
  expect(wantsColor({}, true, false)).toBe(false);
  expect(styleFor(true).red("x")).toBe("\u001b[31mx\u001b[39m");
  expect(isUnicode({ LANG: "C.UTF-8" })).toBe(true);
  expect(isUnicode({ LC_ALL: "C", LANG: "C.UTF-8" })).toBe(false);
});

test("time between an end and a retry is no part of the time a run took", () => {
  const days = {
    finished: "2026-11-18T10:00:11.000Z",
    idle: 3 * 86_400,
    state: "DONE",
    counts: { DONE: 1000 },
  } as const;
  expect(elapsed(sampleRun(days), NOW)).toBe(10);
  expect(runSummary(sampleRun(days), [], PLAIN, NOW, true)).toContain("in 10 s, 100 tasks/s");
  expect(elapsed(sampleRun({ idle: 50 }), NOW)).toBe(10);
});
