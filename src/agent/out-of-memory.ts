import { constants } from "node:os";
import { Ending } from "../core/events.ts";
import type { Peak } from "../core/peak.ts";
import type { ExitOutcome } from "./exit-outcome.ts";
import type { Exit } from "./spawner/spawner.ts";

/**
 * Whether the kernel killed a task for memory, which only evidence may say: a plain SIGKILL can be anybody's. The task's
 * own cgroup counts exactly. Where it has none, its pilot's counts for all tasks: then the task must have died of SIGKILL
 * at that time, and must itself have had much of what it asked for, for the kernel kills the largest.
 */
export interface MemoryEvidence {
  readonly peak: Peak | undefined;
  /** Bytes that it asked for. */
  readonly limit: number | undefined;
  /** Whether its pilot's cgroup counted a kill just now that explains nobody else's death. */
  pilotKill(): boolean;
}

/** How much of its request a task must have had to be the one that needed more. */
const MUCH = 1 / 2;

const { SIGKILL } = constants.signals;
const mib = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)}M`;

/** `outcome` is what its exit alone says. */
export const withMemoryEvidence = (
  outcome: ExitOutcome,
  exit: Pick<Exit, "oomKills">,
  { peak, limit, pilotKill }: MemoryEvidence,
): ExitOutcome => {
  const { ending, code } = outcome;
  if ((ending !== Ending.SIGNAL && ending !== Ending.EXIT) || code === 0) return outcome;
  const had = peak === undefined ? "" : `, at ${mib(peak.bytes)}${limit === undefined ? "" : ` of mem ${mib(limit)}`}`;
  const killed = (by: string): ExitOutcome => ({
    ending: Ending.MEMORY,
    code,
    detail: `out of memory: the kernel killed it (oom_kill of ${by})${had}`,
  });
  if (exit.oomKills > 0) return killed("its cgroup");
  const bySigkill = ending === Ending.SIGNAL ? -code === SIGKILL : code === 128 + SIGKILL;
  if (!bySigkill || (peak !== undefined && limit !== undefined && peak.bytes < limit * MUCH) || !pilotKill())
    return outcome;
  if (peak !== undefined && limit !== undefined) return killed("its pilot's cgroup");
  const how = ending === Ending.SIGNAL ? "killed by SIGKILL" : `exit code ${code}`;
  return { ...outcome, detail: `${how}, when the kernel killed a process of its pilot for memory${had}` };
};
