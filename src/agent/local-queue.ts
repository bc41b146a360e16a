import { SlipwayError } from "../errors.ts";
import { createGroupHeap, type Group, type Node } from "./queue-groups.ts";

/** What the queue must know of a task. Tasks of one shape ask for the same resources: if one does not fit, none does. */
export interface Queueable {
  readonly shape: string;
  readonly priority: number;
  /** Where it waits: the queue's own, undefined outside. A table of all would cost more than the rest of the queue. */
  place?: object | undefined;
}

export interface LocalQueueOptions {
  /** How many later tasks may start before the first one, while that one does not fit. */
  readonly bypasses?: number;
  /** How many different shapes are tried for one start; bounds the work when every task has a shape of its own. */
  readonly lookahead?: number;
}

/**
 * Tasks that wait for a slot on this agent: higher priority first, in the order of arrival within a priority. When the
 * first does not fit, later ones that do may pass it, a bounded number of times; then nothing starts until it fits, so
 * that a large task is never starved. Starting, removing and adding cost the logarithm of the number of shapes.
 */
export interface LocalQueue<T extends Queueable> {
  readonly size: number;
  push(task: T): void;
  has(task: T): boolean;
  /** The next in order, whether or not it fits. */
  first(): T | undefined;
  /** Takes out the first task that `allocate` finds room for. `allocate` is asked once per shape and call. */
  next<S>(allocate: (task: T) => S | undefined): { readonly task: T; readonly slot: S } | undefined;
  /** Takes it out; false if it does not wait here. */
  remove(task: T): boolean;
  /** Up to `count` tasks from the end of the order, last first. */
  takeBack(count: number): T[];
}

export const createLocalQueue = <T extends Queueable>(options: LocalQueueOptions = {}): LocalQueue<T> => {
  const { bypasses = 16, lookahead = 256 } = options;
  let size = 0;
  const groups = new Map<number, Map<string, Group<T>>>();
  const heap = createGroupHeap<T>();
  let sequence = 0;

  const groupOf = (task: T): Group<T> => {
    let shapes = groups.get(task.priority);
    if (shapes === undefined) groups.set(task.priority, (shapes = new Map()));
    let group = shapes.get(task.shape);
    if (group === undefined) {
      group = { priority: task.priority, shape: task.shape, head: undefined, tail: undefined, at: -1 };
      shapes.set(task.shape, group);
    }
    return group;
  };

  const take = (node: Node<T>): T => {
    const { group, before, behind } = node;
    node.task.place = undefined;
    size -= 1;
    if (before !== undefined) before.behind = behind;
    if (behind !== undefined) behind.before = before;
    if (group.tail === node) group.tail = before;
    if (group.head !== node) return node.task;
    group.head = behind;
    if (behind !== undefined) {
      heap.fix(group);
      return node.task;
    }
    heap.remove(group);
    const shapes = groups.get(group.priority)!;
    shapes.delete(group.shape);
    if (shapes.size === 0) groups.delete(group.priority);
    return node.task;
  };

  return {
    get size() {
      return size;
    },

    push(task) {
      if (task.place !== undefined) throw new SlipwayError("internal", { detail: "a task was queued twice" });
      const group = groupOf(task);
      const node: Node<T> = { task, group, sequence: sequence++, before: group.tail, behind: undefined, bypassed: 0 };
      task.place = node;
      size += 1;
      if (group.tail !== undefined) group.tail.behind = node;
      group.tail = node;
      if (group.head !== undefined) return;
      group.head = node;
      heap.add(group);
    },

    has: (task) => task.place !== undefined,

    first: () => heap.first()?.head?.task,

    next(allocate) {
      const first = heap.first()?.head;
      if (first === undefined) return undefined;
      const slot = allocate(first.task);
      if (slot !== undefined) return { task: take(first), slot };
      if (first.bypassed >= bypasses) return undefined;
      // Shapes found too large leave the heap during the search, and come back before it returns.
      const aside: Group<T>[] = [];
      const refused = new Set([first.group.shape]);
      try {
        heap.remove(first.group);
        aside.push(first.group);
        for (let tried = 1; tried < lookahead; tried++) {
          const group = heap.first();
          if (group === undefined) return undefined;
          // A shape that did not fit at one priority does not fit at another.
          const found = refused.has(group.shape) ? undefined : allocate(group.head!.task);
          if (found !== undefined) {
            first.bypassed++;
            return { task: take(group.head!), slot: found };
          }
          refused.add(group.shape);
          heap.remove(group);
          aside.push(group);
        }
        return undefined;
      } finally {
        for (const group of aside) heap.add(group);
      }
    },

    remove(task) {
      if (task.place === undefined) return false;
      take(task.place as Node<T>);
      return true;
    },

    takeBack(count) {
      const ends = createGroupHeap<T>("tail");
      for (const shapes of groups.values()) for (const group of shapes.values()) ends.add({ ...group, twin: group });
      const taken: T[] = [];
      while (taken.length < count) {
        const end = ends.first();
        if (end === undefined) break;
        taken.push(take(end.tail!));
        end.tail = end.twin!.tail;
        if (end.tail === undefined) ends.remove(end);
        else ends.fix(end);
      }
      return taken;
    },
  };
};
