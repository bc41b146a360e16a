import { Lost } from "../../core/output-lost.ts";
import type { OutputLimits } from "../../protocol/messages.ts";

/** How much output a run may leave with this agent: the server's limits, and what the run has used of them. */

export interface RunRoom {
  limits: OutputLimits;
  /** Bytes of this run that are in the file or on their way to it. */
  used: number;
}

/** For a server that sends no limits. */
export const NO_LIMITS: OutputLimits = { perTask: Infinity, perRun: Infinity, over: false };

/** How many more bytes an attempt that has `taken` may leave. */
export const roomFor = ({ limits, used }: RunRoom, taken: number): number =>
  limits.over ? 0 : Math.max(0, Math.min(limits.perTask - taken, limits.perRun - used));

/** Which limit leaves the least room. */
export const limitReached = ({ limits, used }: RunRoom, taken: number): number =>
  !limits.over && limits.perTask - taken <= limits.perRun - used ? Lost.PER_TASK : Lost.PER_RUN;
