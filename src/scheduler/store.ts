import { partsByShape } from "../core/later-shapes.ts";
import { type Group, type Run, isUniform } from "../core/run.ts";
import type { Row } from "../core/ids.ts";
import type { Order } from "./order.ts";
import { type Unfolding, createUnfolding } from "./unfolding.ts";
import { type Waiting, createWaiting } from "./waiting.ts";

/** Tasks that wait: in the queues, or on their way into them. */
export interface Store {
  readonly waiting: Waiting;
  readonly unfolding: Unfolding;
  /** All of them. */
  readonly total: number;
  /** Rows of one group may be placed. */
  ready(run: Run, group: Group, from: Row, end: Row): void;
  dropRun(run: Run): void;
}

export const createStore = (order: Order): Store => {
  const waiting = createWaiting(order);
  const unfolding = createUnfolding(waiting);
  return {
    waiting,
    unfolding,
    get total() {
      return waiting.total + unfolding.rows;
    },
    ready: (run, group, from, end) => {
      if (isUniform(group)) waiting.push(run, group, group.shape, from, end - from);
      else if (group.rowShapes !== undefined) unfolding.add(run, group, from, end - from);
      else
        for (const part of partsByShape(group, from, end)) waiting.push(run, group, part.shape, part.from, part.count);
    },
    dropRun: (run) => {
      unfolding.dropRun(run);
      waiting.dropRun(run);
    },
  };
};
