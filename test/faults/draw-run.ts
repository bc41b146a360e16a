import type { Random } from "./random.ts";
import type { RunPlan } from "./schedule.ts";

/**
 * The cost of a task that does nothing, on a slow machine; it makes the work last about as long as the trouble does.
 */
const OVERHEAD_MS = 4;
const MOST_TASKS = 700;

export const drawRun = (random: Random, at: number, slots: number): RunPlan => {
  const every = random.chance(0.4) ? random.int(3, 9) : 0;
  const retries = every > 0 ? random.int(0, 2) : 0;
  const ms = random.weighed([
    [2, 0],
    [3, random.int(2, 20)],
    [2, random.int(20, 100)],
  ]);
  const lasting = random.int(200, 2500);
  return {
    at,
    tasks: random.chance(0.1)
      ? random.int(1, 4)
      : Math.max(1, Math.min(MOST_TASKS, Math.round((lasting * slots) / (ms + OVERHEAD_MS * slots)))),
    ms,
    every,
    // most of them succeed in the end
    times:
      every > 0
        ? random.weighed([
            [3, retries],
            [1, 99],
          ] as const)
        : 0,
    retries,
    behind: random.chance(0.3) ? random.int(1, 20) : 0,
    lines: random.chance(0.3),
    by: random.chance(0.25) ? "cli" : "sdk",
  };
};
