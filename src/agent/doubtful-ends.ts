import { constants } from "node:os";
import { Ending } from "../core/events.ts";
import type { Result } from "./results.ts";

/**
 * A manager that ends a job signals every process in it, tasks and agent alike, in any order. A task that died of such
 * a signal, which nobody here sent, is therefore not judged at once: if the agent gets its own signal a moment later,
 * the task was interrupted with its pilot and runs again at no cost; if not, it failed. The same holds for a spawner
 * that ended: with the pilot it costs nothing, otherwise it is a loss.
 */

/** Long enough for a signal to arrive on a busy node, short enough that nobody waits for it. */
const MOMENT_MS = 400;

const { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU } = constants.signals;
const MANAGERS_SIGNALS = new Set<number>([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU]);

/** Ended by one of these signals, or by a shell that reports one of its child; or with its spawner. */
export const isDoubtful = ({ ending, code }: Pick<Result, "ending" | "code">): boolean =>
  ending === Ending.SPAWNER_LOST ||
  (ending === Ending.SIGNAL && MANAGERS_SIGNALS.has(-code)) ||
  (ending === Ending.EXIT && MANAGERS_SIGNALS.has(code - 128));

export interface DoubtfulEnds<T> {
  add(task: T, result: Result): void;
  /** The agent is being ended too: these tasks were interrupted, and so are those that follow. */
  interrupted(): void;
}

const asInterrupted = (result: Result): Result => ({
  ...result,
  ending: Ending.INTERRUPTED,
  ...(result.ending === Ending.SPAWNER_LOST ? { detail: "its pilot was told to end" } : {}),
});

export const createDoubtfulEnds = <T>(settle: (task: T, result: Result) => void): DoubtfulEnds<T> => {
  const waiting = new Map<T, { readonly result: Result; readonly timer: NodeJS.Timeout }>();
  let over = false;
  return {
    add: (task, result) => {
      // it died before the agent got its own request to end
      if (over) return settle(task, asInterrupted(result));
      const timer = setTimeout(() => {
        waiting.delete(task);
        settle(task, result);
      }, MOMENT_MS);
      waiting.set(task, { result, timer });
    },
    interrupted: () => {
      over = true;
      for (const [task, { result, timer }] of waiting) {
        clearTimeout(timer);
        waiting.delete(task);
        settle(task, asInterrupted(result));
      }
    },
  };
};
