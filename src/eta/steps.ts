/** Work in pieces of about a millisecond: between two of them, whoever does it may let others have their turn. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** How many groups one piece looks at. */
export const PIECE = 512;

/** All pieces at once. */
export const whole = <T>(steps: Steps<T>): T => {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
};

/** The same steps, but if their subject is over before the next one, they stop there and return `over`. */
export function* until<T>(steps: Steps<T>, isOver: () => boolean, over: T): Steps<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    yield;
    if (isOver()) return over;
  }
}
