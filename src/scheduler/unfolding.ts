import { type Group, type Run, shapeOfRow } from "../core/run.ts";
import type { Waiting } from "./waiting.ts";

/**
 * Rows with shapes of their own, on their way into the queues. They are put in order a few at a time: a million at once
 * would hold up everyone.
 */
export interface Unfolding {
  /** Rows that are not in the queues yet. */
  readonly rows: number;
  add(run: Run, group: Group, from: number, count: number): void;
  /** Puts at most this many of them into the queues. */
  unfold(most: number): void;
  dropRun(run: Run): void;
}

export const createUnfolding = (waiting: Waiting): Unfolding => {
  let folded: { readonly run: Run; readonly group: Group; from: number; readonly end: number }[] = [];
  let rows = 0;

  return {
    get rows() {
      return rows;
    },
    add: (run, group, from, count) => {
      folded.push({ run, group, from, end: from + count });
      rows += count;
    },
    unfold: (most) => {
      let left = most;
      while (left > 0 && folded.length > 0) {
        const part = folded[0]!;
        const end = Math.min(part.end, part.from + left);
        left -= end - part.from;
        rows -= end - part.from;
        for (; part.from < end; part.from += 1)
          waiting.push(part.run, part.group, shapeOfRow(part.group, part.from), part.from, 1);
        if (part.from === part.end) folded.shift();
      }
    },
    dropRun: (run) => {
      if (!folded.some((part) => part.run === run)) return;
      folded = folded.filter((part) => part.run !== run);
      rows = folded.reduce((sum, { from, end }) => sum + end - from, 0);
    },
  };
};
