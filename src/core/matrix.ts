import type { Axis, ItemSource } from "./spec.ts";

/** Products: an item for each combination of values, made when it is needed. The last key varies fastest. */

export type Matrix = Extract<ItemSource, { readonly kind: "matrix" }>;

export const valuesIn = ({ ranges, values }: Axis): number =>
  values?.length ?? (ranges ?? []).reduce((sum, { count }) => sum + count, 0);

/** One value as JSON. */
const valueAt = ({ ranges = [], values }: Axis, nth: number): string => {
  if (values !== undefined) return JSON.stringify(values[nth]);
  let left = nth;
  for (const { from, step, count } of ranges) {
    if (left < count) return String(from + left * step);
    left -= count;
  }
  return "null";
};

/** The item at a place, as compact JSON with the keys in their order. */
export const matrixItem = ({ axes }: Matrix, place: number): string => {
  let text = "";
  let left = place;
  for (let i = axes.length - 1; i >= 0; i -= 1) {
    const axis = axes[i]!;
    const count = valuesIn(axis);
    text = `${JSON.stringify(axis.name)}:${valueAt(axis, left % count)}${text === "" ? "" : ","}${text}`;
    left = Math.floor(left / count);
  }
  return `{${text}}`;
};

/** All of them in order. */
export function* matrixItems(matrix: Matrix): Generator<string> {
  for (let place = 0; place < matrix.count; place += 1) yield matrixItem(matrix, place);
}

/**
 * Places that show each value of each key at least once, and the longest of all together: what holds for their items holds for
 * all. Numbers of ranges are alike: the last one stands for all.
 */
export function* telling({ axes }: Matrix): Generator<number> {
  let longest = 0;
  let stride = 1;
  for (let i = axes.length - 1; i >= 0; i -= 1) {
    const axis = axes[i]!;
    const count = valuesIn(axis);
    let most = count - 1;
    if (axis.values !== undefined)
      for (let nth = 0; nth < count; nth += 1) {
        yield nth * stride;
        if (axis.values[nth]!.length > axis.values[most]!.length) most = nth;
      }
    longest += most * stride;
    stride *= count;
  }
  yield longest;
}

export const sameAxes = (a: Matrix, b: Matrix): boolean => JSON.stringify(a.axes) === JSON.stringify(b.axes);
