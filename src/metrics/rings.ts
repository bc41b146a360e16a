/**
 * How numbers went, in steps of equal length: a ring of fixed size for each length. What is counted is summed over a
 * step, what is measured is as it was at its end. A step in which nobody looked is not there.
 */

export interface RingShape {
  readonly stepMs: number;
  readonly steps: number;
}

export interface Ring {
  /** `counted` since the last time, and `measured` now; both as long as was said when the ring was made. */
  add(at: number, counted: readonly number[], measured: readonly number[]): void;
  /** Oldest first: when each step ended, then a column for each of the numbers. */
  columns(): { readonly time: number[]; readonly values: number[][] };
}

export const createRing = ({ stepMs, steps }: RingShape, counts: number, gauges: number): Ring => {
  const width = counts + gauges;
  const values = new Float64Array(steps * width);
  /** The number of the step that each place holds; -1: none. */
  const numbers = new Float64Array(steps).fill(-1);
  return {
    add: (at, counted, measured) => {
      const number = Math.floor(at / stepMs);
      const place = number % steps;
      // a clock that was set back must not empty what is newer
      if (numbers[place]! > number) return;
      if (numbers[place] !== number) values.fill(0, place * width, (place + 1) * width);
      numbers[place] = number;
      for (let i = 0; i < counts; i += 1) values[place * width + i]! += counted[i]!;
      for (let i = 0; i < gauges; i += 1) values[place * width + counts + i] = measured[i]!;
    },
    columns: () => {
      const newest = numbers.reduce((most, each) => Math.max(most, each), -1);
      const places = Array.from(numbers.keys())
        .filter((place) => numbers[place]! >= 0 && numbers[place]! > newest - steps)
        .sort((a, b) => numbers[a]! - numbers[b]!);
      return {
        time: places.map((place) => (numbers[place]! + 1) * stepMs),
        values: Array.from({ length: width }, (_, i) => places.map((place) => values[place * width + i]!)),
      };
    },
  };
};
