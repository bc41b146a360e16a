import type { JobOutcome, JobStatus } from "../../provider.ts";
import type { Attributes } from "./parse.ts";

/** The state of a PBS job, from its attributes. No single one of them says how it ended. */

const STATES: Readonly<Record<string, JobStatus["state"]>> = {
  Q: "queued",
  W: "queued",
  T: "queued",
  H: "held",
  R: "active",
  B: "active",
  // its processes are gone and its status is known, but its output is still being copied
  E: "active",
  S: "suspended",
  U: "suspended",
  F: "ended",
  X: "ended",
};

/** Codes for an end that the job's script did not choose. */
const NEGATIVE: ReadonlyMap<number, JobOutcome> = new Map([
  [-20, "lost"],
  [-26, "out-of-memory"],
  [-27, "out-of-memory"],
  [-28, "timeout"],
  [-29, "timeout"],
]);

const DELETED = 91;
const FAILED = 93;
/** PBS has tried to start it a number of times, and holds it now. */
const GIVEN_UP = /too many failed attempts to run/i;
const TERMINATED = / and terminated(?: by \S+)?$/;
/** The status of a job that a signal ended is this much more than the signal's number. */
const SIGNALLED = 256;

const numberOf = (attributes: Attributes, name: string): number | undefined => {
  const text = attributes.get(name);
  return text !== undefined && /^-?\d{1,9}$/.test(text) ? Number(text) : undefined;
};

/** The server says so in the comment as soon as it accepts the order; the substate says it only when all is over. */
const wasDeleted = (attributes: Attributes): boolean =>
  numberOf(attributes, "substate") === DELETED || TERMINATED.test(attributes.get("comment")?.trim() ?? "");

const outcomeOf = (attributes: Attributes): JobOutcome => {
  const exit = numberOf(attributes, "Exit_status");
  const substate = numberOf(attributes, "substate");
  if (wasDeleted(attributes)) return "cancelled";
  // finished without having run: what it depends on failed
  if (exit === undefined) return attributes.has("stime") ? "unknown" : "start-failed";
  if (exit < 0) return NEGATIVE.get(exit) ?? "start-failed";
  if (exit === SIGNALLED + 15) return "cancelled";
  // the parent of an array says 0 although one of its jobs failed
  return exit === 0 && substate !== FAILED ? "done" : "failed";
};

/** `n1/0*2+n2/0*2`: the hosts, each once. */
export const hostsOf = (execHost: string): string[] => [
  ...new Set(execHost.split("+").map((part) => part.trim().split("/")[0]!)),
];

const reasonOf = (attributes: Attributes, outcome: JobOutcome | undefined): string | undefined => {
  const comment = attributes.get("comment")?.trim();
  if (comment !== undefined && comment !== "") return comment;
  const depends = attributes.get("depend");
  return outcome === "start-failed" && depends !== undefined ? `what it depends on failed: ${depends}` : undefined;
};

const told = (attributes: Attributes, state: JobStatus["state"], raw: string): JobStatus => {
  const exit = numberOf(attributes, "Exit_status");
  const outcome = state === "ended" ? outcomeOf(attributes) : undefined;
  const reason = reasonOf(attributes, outcome);
  const hosts = attributes.get("exec_host");
  return {
    state,
    raw,
    ...(reason === undefined ? {} : { reason }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(state === "held" && GIVEN_UP.test(reason ?? "") ? { stuck: true } : {}),
    // one that is queued again still carries the status of its last try
    ...(state !== "ended" || exit === undefined || exit < 0
      ? {}
      : exit > SIGNALLED
        ? { signal: exit - SIGNALLED }
        : { exitCode: exit }),
    ...(hosts === undefined ? {} : { hosts: hostsOf(hosts) }),
  };
};

const stateOf = (attributes: Attributes): string => attributes.get("job_state") ?? "";

/** How it ended, in case it is gone when next asked about; undefined when nothing says. */
export const statusIfGone = (attributes: Attributes): JobStatus | undefined =>
  (stateOf(attributes) === "E" && attributes.has("Exit_status")) || wasDeleted(attributes)
    ? told(attributes, "ended", "gone")
    : undefined;

export const statusOf = (attributes: Attributes): JobStatus => {
  const raw = stateOf(attributes);
  return told(attributes, Object.hasOwn(STATES, raw) ? STATES[raw]! : "unknown", raw);
};
