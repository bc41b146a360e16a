/**
 * When results go to the server: with the next turn of the loop when a slot is idle without it, gathered while every
 * slot has work in hand.
 */

/** While others take the slots that are left, results are gathered this long: the server has nothing to give us before. */
const GATHER_MS = 20;

export interface ResultPace {
  /** There are results; `idle`: the server could give us something to do for them. */
  due(idle: boolean): void;
  stop(): void;
}

export const createResultPace = (send: () => void): ResultPace => {
  let timer: NodeJS.Timeout | undefined;
  let now = false;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    now = false;
    send();
  };
  return {
    due: (idle) => {
      if (now) return;
      if (idle) {
        clearTimeout(timer);
        timer = undefined;
        now = true;
        setImmediate(flush);
      } else timer ??= setTimeout(flush, GATHER_MS);
    },
    stop: () => clearTimeout(timer),
  };
};
