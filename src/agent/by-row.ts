import type { Row, RunId } from "../core/ids.ts";

/** One thing for each of some rows. A table for each run: a key for both would be a number that needs memory of its own. */
export interface ByRow<T> {
  readonly size: number;
  get(run: RunId, row: Row): T | undefined;
  set(run: RunId, row: Row, value: T): void;
  delete(run: RunId, row: Row): void;
  values(): Generator<T>;
}

export const createByRow = <T>(): ByRow<T> => {
  const runs = new Map<RunId, Map<Row, T>>();
  let size = 0;
  /** Of the run that was asked for last. */
  let latest: RunId | undefined;
  let rows: Map<Row, T> | undefined;

  const rowsOf = (run: RunId): Map<Row, T> | undefined => {
    if (run === latest) return rows;
    latest = run;
    return (rows = runs.get(run));
  };

  return {
    get size() {
      return size;
    },
    get: (run, row) => rowsOf(run)?.get(row),
    set: (run, row, value) => {
      let of = rowsOf(run);
      if (of === undefined) runs.set(run, (of = rows = new Map<Row, T>()));
      const before = of.size;
      of.set(row, value);
      size += of.size - before;
    },
    delete: (run, row) => {
      const of = rowsOf(run);
      if (of?.delete(row) !== true) return;
      size -= 1;
      if (of.size > 0) return;
      runs.delete(run);
      rows = undefined;
    },
    *values() {
      for (const of of runs.values()) yield* of.values();
    },
  };
};
