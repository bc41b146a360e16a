import { describe, expect, it } from "vitest";
import type { JobStatus } from "../../../../src/managers/provider.ts";
import { excerptOf, verdictOf } from "../../../../src/launch/service/outcome.ts";

const ended = (facts: Partial<JobStatus>): JobStatus => ({ state: "ended", raw: "X", ...facts });
const quiet = { cancelAsked: false };

describe("what a manager's answer means for a launch", () => {
  it.each([
    ["done", ended({ outcome: "done", exitCode: 0 }), quiet, { state: "succeeded", exitCode: 0 }],
    [
      "a failure",
      ended({ outcome: "failed", exitCode: 3 }),
      quiet,
      { state: "failed", exitCode: 3, reason: "exit code 3" },
    ],
    [
      "a failure whose code only the script left",
      ended({ outcome: "failed" }),
      { exitCode: 7, cancelAsked: false },
      { state: "failed", exitCode: 7, reason: "exit code 7" },
    ],
    ["a signal", ended({ outcome: "failed", signal: 11 }), quiet, { state: "failed", signal: 11, reason: "signal 11" }],
    [
      "the time limit",
      ended({ outcome: "timeout", reason: "TimeLimit" }),
      quiet,
      { state: "failed", reason: "the time limit was reached (TimeLimit)" },
    ],
    ["memory", ended({ outcome: "out-of-memory" }), quiet, { state: "failed", reason: "it ran out of memory" }],
    ["preemption", ended({ outcome: "preempted" }), quiet, { state: "failed" }],
    ["a start that failed", ended({ outcome: "start-failed", reason: "JobLaunchFailure" }), quiet, { state: "failed" }],
    ["a lost node", ended({ outcome: "lost" }), quiet, { state: "lost", reason: "a node of the job was lost" }],
    ["cancelled by the manager's own command", ended({ outcome: "cancelled" }), quiet, { state: "cancelled" }],
    ["cancelled here", ended({ outcome: "failed", signal: 15 }), { cancelAsked: true }, { state: "cancelled" }],
    [
      "failed before the cancellation came",
      ended({ outcome: "failed", exitCode: 2 }),
      { exitCode: 2, cancelAsked: true },
      { state: "failed" },
    ],
    [
      "cancelled here and forgotten: its script was told to end",
      ended({ outcome: "unknown" }),
      { exitCode: 143, cancelAsked: true },
      { state: "cancelled", reason: "cancelled" },
    ],
    [
      "forgotten, failed before the cancellation came",
      ended({ outcome: "unknown" }),
      { exitCode: 2, cancelAsked: true },
      { state: "failed", exitCode: 2 },
    ],
    [
      "done before the cancellation came",
      ended({ outcome: "done" }),
      { exitCode: 0, cancelAsked: true },
      { state: "succeeded" },
    ],
    [
      "forgotten, with an exit code left",
      ended({ outcome: "unknown" }),
      { exitCode: 0, cancelAsked: false },
      { state: "succeeded" },
    ],
    [
      "forgotten, failed",
      ended({ outcome: "unknown" }),
      { exitCode: 9, cancelAsked: false },
      { state: "failed", exitCode: 9 },
    ],
    ["forgotten without a trace", ended({ outcome: "unknown" }), quiet, { state: "lost" }],
    ["an end without an outcome", ended({}), quiet, { state: "lost" }],
  ] as const)("%s", (_what, status, evidence, expected) => {
    expect(verdictOf(status, evidence)).toMatchObject({ raw: "X", ...expected });
  });

  it("keeps the manager's words while the job waits or runs, and changes nothing for a state that nobody knows", () => {
    expect(verdictOf({ state: "queued", raw: "PENDING", reason: "Resources" }, quiet)).toEqual({
      raw: "PENDING",
      reason: "Resources",
    });
    expect(verdictOf({ state: "held", raw: "H" }, quiet)).toEqual({ raw: "H" });
    expect(verdictOf({ state: "active", raw: "RUNNING", hosts: ["n1", "n2"] }, quiet)).toEqual({
      state: "running",
      raw: "RUNNING",
      reason: "",
      hosts: ["n1", "n2"],
    });
    expect(verdictOf({ state: "suspended", raw: "SUSPENDED" }, quiet)).toMatchObject({
      state: "running",
      reason: "suspended",
    });
    expect(verdictOf({ state: "unknown", raw: "WEIRD" }, quiet)).toEqual({ raw: "WEIRD" });
  });
});

describe("the informative part of an error log", () => {
  it("is its first and last lines, and long ones are cut", () => {
    const lines = Array.from({ length: 100 }, (_, i) => `line ${i}`);
    const excerpt = excerptOf(`\n${lines.join("\r\n")}\n\n`).split("\n");
    expect(excerpt[0]).toBe("line 0");
    expect(excerpt).toContain("… 80 more lines …");
    expect(excerpt.at(-1)).toBe("line 99");
    expect(excerpt).toHaveLength(21);
    expect(excerptOf("x".repeat(5000))).toHaveLength(401);
    expect(excerptOf("one\ntwo")).toBe("one\ntwo");
    expect(excerptOf("")).toBe("");
  });
});
