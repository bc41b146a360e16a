import { setTimeout as sleep } from "node:timers/promises";

/**
 * Only a hang reaches it; vitest.config.ts sets it below the time limit of a project's tests, so that this error is
 * seen.
 */
const patienceMs = (): number => Number(process.env["TEST_PATIENCE_MS"] ?? 120_000);
const LONGEST_PAUSE_MS = 200;

type Answer<T> = T | undefined | false;

/**
 * Asks until the answer is neither undefined nor false; for events that give no notice. `what` tells the error what was
 * awaited: "two agents", "the server is gone".
 */
export const until = async <T>(
  what: string | (() => string),
  ask: () => Answer<T> | Promise<Answer<T>>,
  limitMs = patienceMs(),
): Promise<T> => {
  const start = performance.now();
  for (let round = 1; ; round += 1) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() - start > limitMs)
      throw new Error(`waited ${limitMs / 1000} s in vain: ${typeof what === "string" ? what : what()}`);
    await sleep(Math.min(LONGEST_PAUSE_MS, round));
  }
};
