import type { Launch, LaunchState } from "../../core/launch.ts";
import type { JobStatus } from "../../managers/provider.ts";

/** What a manager's answer, and what the job itself left behind, mean for a launch. */

export interface Verdict {
  readonly state?: LaunchState;
  readonly raw?: string;
  readonly reason?: string;
  readonly exitCode?: number;
  readonly signal?: number;
  readonly hosts?: readonly string[];
}

export interface Evidence {
  /** What the script wrote as its last act; undefined: it did not get that far. */
  readonly exitCode?: number;
  readonly cancelAsked: boolean;
}

const WORDS = {
  timeout: "the time limit was reached",
  "out-of-memory": "it ran out of memory",
  preempted: "its nodes were needed for another job",
  lost: "a node of the job was lost",
  "start-failed": "the manager could not start it",
} as const;

/** What a job's script writes when it got SIGTERM. */
const TOLD_TO_END = 143;

const withReason = (said: string | undefined, ours: string): string =>
  said === undefined || said === "" || said === "None" ? ours : `${ours} (${said})`;

const ending = (status: JobStatus, { exitCode: left, cancelAsked }: Evidence): Verdict => {
  const { outcome = "unknown", reason } = status;
  const exitCode = status.exitCode ?? left;
  const code = exitCode === undefined ? {} : { exitCode };
  const signal = status.signal === undefined ? {} : { signal: status.signal };
  const facts = { ...code, ...signal };
  if (outcome === "done") return { state: "succeeded", ...facts, exitCode: exitCode ?? 0 };
  // a job that ended by itself before the cancellation reached it keeps its own outcome
  const wasTold = cancelAsked && (left === undefined || left === TOLD_TO_END);
  if (outcome === "cancelled" || (wasTold && outcome !== "timeout"))
    return { state: "cancelled", reason: withReason(reason, "cancelled"), ...facts };
  if (outcome === "unknown") {
    if (left === 0) return { state: "succeeded", exitCode: 0 };
    if (left !== undefined) return { state: "failed", reason: `exit code ${left}`, exitCode: left };
    return {
      state: "lost",
      reason: withReason(reason, "the manager no longer knows it, and it left no exit code"),
      ...facts,
    };
  }
  if (outcome === "lost") return { state: "lost", reason: withReason(reason, WORDS.lost), ...facts };
  if (outcome === "failed") {
    const how =
      status.signal === undefined || status.signal === 0
        ? `exit code ${exitCode ?? "unknown"}`
        : `signal ${status.signal}`;
    return { state: "failed", reason: withReason(reason, how), ...facts };
  }
  return { state: "failed", reason: withReason(reason, WORDS[outcome]), ...facts };
};

export const verdictOf = (status: JobStatus, evidence: Evidence): Verdict => {
  const said = {
    raw: status.raw,
    ...(status.hosts === undefined ? {} : { hosts: status.hosts }),
  };
  const reason = status.reason === undefined ? {} : { reason: status.reason };
  switch (status.state) {
    case "queued":
    case "held":
      return { ...said, ...reason };
    case "active":
    case "suspended":
      return { ...said, reason: status.state === "suspended" ? (status.reason ?? "suspended") : "", state: "running" };
    case "ended":
      return { ...said, ...ending(status, evidence) };
    default:
      return { ...said, ...reason };
  }
};

/** Whether a verdict on a live launch says something new. */
export const isNews = (launch: Launch, verdict: Verdict): boolean =>
  (verdict.state === "running" && launch.state === "pending") ||
  (verdict.raw !== undefined && verdict.raw !== launch.raw) ||
  (verdict.reason !== undefined && verdict.reason !== launch.reason) ||
  (verdict.hosts !== undefined && verdict.hosts.join() !== launch.hosts.join());

const FIRST_LINES = 8;
const LAST_LINES = 12;
const LONGEST_LINE = 400;

/** The informative part of an error log: its first and last lines, each short enough to read. */
export const excerptOf = (text: string): string => {
  const lines = text
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line))
    .filter((line) => line.trim() !== "");
  if (lines.length <= FIRST_LINES + LAST_LINES) return lines.join("\n");
  const left = lines.length - FIRST_LINES - LAST_LINES;
  return [...lines.slice(0, FIRST_LINES), `… ${left} more lines …`, ...lines.slice(-LAST_LINES)].join("\n");
};
