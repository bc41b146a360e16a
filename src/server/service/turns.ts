import { setImmediate as nextTurn } from "node:timers/promises";

/** Long work in turns: whoever does it yields often, and everybody else gets on in between. */
export const inTurns = async <T>(work: Generator<undefined, T>, signal?: AbortSignal): Promise<T> => {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    signal?.throwIfAborted();
    await nextTurn();
  }
};
