/**
 * When results go to the server: with the next turn of the loop if a slot would otherwise be idle; gathered while every
 * slot has work.
 */

/**
 * While other tasks use the remaining slots, results are gathered for this long: until then the server has nothing for
 * us.
 */
const GATHER_MS = 20;
/**
 * And for this long while nobody waits for any of them. A message costs a commit, and most of what the server spends on
 * a short task is its share of that.
 */
const PATIENT_MS = 100;

export interface ResultPace {
  /** There are results; `idle`: the server could give us new work for them; `patient`: nobody waits for them. */
  due(idle: boolean, patient?: boolean): void;
  /** Sends them at once, before something that builds on them. */
  flush(): void;
  stop(): void;
}

export const createResultPace = (send: () => void): ResultPace => {
  let timer: NodeJS.Timeout | undefined;
  let dueAt = 0;
  let now = false;
  const clear = (): void => {
    clearTimeout(timer);
    timer = undefined;
  };
  const flush = (): void => {
    clear();
    now = false;
    send();
  };
  const gather = (ms: number): void => {
    const at = performance.now() + ms;
    if (timer !== undefined && dueAt <= at) return;
    clear();
    dueAt = at;
    timer = setTimeout(flush, ms);
  };
  return {
    due: (idle, patient = false) => {
      if (now) return;
      if (!idle) return gather(patient ? PATIENT_MS : GATHER_MS);
      clear();
      now = true;
      setImmediate(flush);
    },
    flush,
    stop: clear,
  };
};
