import { type Group, type Run, type Shape, waitingShapeOf } from "../core/run.ts";
import type { Batch } from "./batch.ts";

/**
 * The batches of each group: one for the tasks with its shape, and one per bucket for those with shapes of their own.
 * Where shapes come from items, all have their own; elsewhere only those that were tried before with less.
 */
export interface GroupBatches {
  find(group: Group, shape: Shape): Batch | undefined;
  /** Any of a group's. */
  anyOf(group: Group): Batch | undefined;
  add(batch: Batch): void;
  remove(batch: Batch): void;
  ofGroup(group: Group): Batch[];
  of(run: Run): Batch[];
}

/** The shape that all rows of a batch have: tasks of a group share one, but for those that have their own. */
export const sharedShape = (group: Group, shape: Shape): Shape | undefined =>
  group.rowShapes === undefined && shape === waitingShapeOf(group) ? shape : undefined;

export const createGroupBatches = (): GroupBatches => {
  const whole = new Map<Group, Batch>();
  const divided = new Map<Group, Map<string, Batch>>();
  /** Of each run: most runs that end have none left. */
  const counts = new Map<Run, number>();

  const count = (run: Run, by: number): void => {
    const left = (counts.get(run) ?? 0) + by;
    if (left === 0) counts.delete(run);
    else counts.set(run, left);
  };

  const ofGroup = (group: Group): Batch[] => {
    const one = whole.get(group);
    return [...(one === undefined ? [] : [one]), ...(divided.get(group)?.values() ?? [])];
  };

  return {
    find: (group, shape) =>
      sharedShape(group, shape) === undefined ? divided.get(group)?.get(shape.bucket.key) : whole.get(group),
    anyOf: (group) => {
      if (divided.size === 0) return whole.get(group);
      const [other] = divided.get(group)?.values() ?? [];
      return other ?? whole.get(group);
    },
    add: (batch) => {
      const { run, group, shelf, shape } = batch;
      count(run, 1);
      if (shape !== undefined) return void whole.set(group, batch);
      let mine = divided.get(group);
      if (mine === undefined) divided.set(group, (mine = new Map()));
      mine.set(shelf.tally.bucket.key, batch);
    },
    remove: ({ run, group, shelf, shape }) => {
      count(run, -1);
      if (shape !== undefined) return void whole.delete(group);
      const mine = divided.get(group);
      mine?.delete(shelf.tally.bucket.key);
      if (mine?.size === 0) divided.delete(group);
    },
    ofGroup,
    of: (run) => (counts.has(run) ? run.groups.flatMap(ofGroup) : []),
  };
};
