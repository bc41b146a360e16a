import { setTimeout as sleep } from "node:timers/promises";

/**
 * Only a hang reaches it; vitest.config.ts sets it below the time limit of a project's tests, so that this error is
 * seen.
 */
const patienceMs = (): number => Number(process.env["TEST_PATIENCE_MS"] ?? 120_000);
const LONGEST_PAUSE_MS = 200;
const MOST_FOR_OTHERS_MS = 1000;

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
    const asked = performance.now();
    const answer = await ask();
    const now = performance.now();
    if (answer !== undefined && answer !== false) return answer;
    if (now - start > limitMs)
      throw new Error(`waited ${limitMs / 1000} s in vain: ${typeof what === "string" ? what : what()}`);
    // whoever asks by starting a process leaves the machine half of its time for what is waited for
    await sleep(Math.max(Math.min(LONGEST_PAUSE_MS, round), Math.min(MOST_FOR_OTHERS_MS, now - asked)));
  }
};
