/**
 * Work that is asked for often and looks at everything there is: it takes at most a twentieth of the time, however much
 * there is to look at. What is asked for too soon is done once, as soon as it is its turn.
 */
export interface Pace {
  /** Now, or soon. */
  due(): void;
}

/** After work that took this long there is a pause of so many times that long. */
const PAUSE = 19;
/** Less than this is not worth a pause, in milliseconds. */
const LITTLE_MS = 0.5;

export const createPace = (work: () => void, clock: () => number = () => performance.now()): Pace => {
  let notBefore = -Infinity;
  let timer: NodeJS.Timeout | undefined;
  const run = (): void => {
    const begun = clock();
    work();
    const end = clock();
    notBefore = end - begun < LITTLE_MS ? end : end + PAUSE * (end - begun);
  };
  return {
    due: () => {
      if (timer !== undefined) return;
      const wait = notBefore - clock();
      if (wait <= 0) return run();
      timer = setTimeout(() => {
        timer = undefined;
        run();
      }, Math.ceil(wait)).unref();
    },
  };
};
