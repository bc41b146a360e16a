import { constants } from "node:os";
import type { JobOutcome, JobStatus } from "../managers/provider.ts";

/** How to describe the end of a pilot's job. */

const OUTCOMES: Readonly<Record<JobOutcome, string>> = {
  done: "its job ended",
  failed: "its job failed",
  cancelled: "its job was cancelled in the manager",
  timeout: "its walltime is over",
  "out-of-memory": "its job was out of memory",
  lost: "its node was lost",
  preempted: "its job was preempted",
  "start-failed": "its job could not be started",
  unknown: "the manager no longer knows its job",
};

const signalName = (number: number): string =>
  Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`;

/** `its job failed: FAILED (NonZeroExitCode), exit code 1`; empty when nothing is known. */
export const endingText = ({ outcome, raw, reason, exitCode, signal }: JobStatus): string => {
  if (outcome === undefined) return reason ?? "";
  const said = reason === undefined || reason === "" ? raw : `${raw} (${reason})`;
  const code = exitCode === undefined ? "" : `, exit code ${exitCode}`;
  const by = signal === undefined || signal === 0 ? "" : `, ${signalName(signal)}`;
  return `${OUTCOMES[outcome]}${said === "" ? "" : `: ${said}`}${code}${by}`;
};
