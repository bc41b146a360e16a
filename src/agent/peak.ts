import { type Peak, PeakBy, largerPeak } from "../core/peak.ts";
import type { Exit } from "./spawner/spawner.ts";
import type { AgentTask } from "./task.ts";

const known = (bytes: number, by: number): Peak | undefined =>
  bytes > 0 ? { bytes: Math.ceil(bytes), by } : undefined;

/**
 * How much memory an attempt that has ended had at most: what its cgroup counted, else the larger of the kernel's
 * accounts of its processes, one by one, and what the watch saw of all of them together (`watched`, 0 if it saw none).
 * Sums below a launcher are shared out among the ranks that it started here. Undefined where nobody can tell; `exit` is
 * undefined if it was lost with its spawner.
 */
export const peakAtEnd = (
  { rank }: Pick<AgentTask, "rank">,
  exit: Pick<Exit, "error" | "maxRssBytes" | "cgroupPeakBytes"> | undefined,
  watched: number,
): Peak | undefined => {
  const ranks = rank?.below ?? 1;
  if (ranks === 0 || (exit !== undefined && exit.error !== null)) return undefined;
  return (
    known((exit?.cgroupPeakBytes ?? 0) / ranks, PeakBy.CGROUP) ??
    largerPeak(known(exit?.maxRssBytes ?? 0, PeakBy.RUSAGE), known(watched / ranks, PeakBy.WATCH))
  );
};
