/**
 * When results go to the server: with the next turn of the loop if a slot would otherwise be idle; gathered while every
 * slot has work.
 */

/**
 * While other tasks use the remaining slots, results are gathered for this long: until then the server has nothing for
 * us.
 */
const GATHER_MS = 20;

export interface ResultPace {
  /** There are results; `idle`: the server could give us new work for them. */
  due(idle: boolean): void;
  /** Sends them at once, before something that builds on them. */
  flush(): void;
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
    flush,
    stop: () => clearTimeout(timer),
  };
};
