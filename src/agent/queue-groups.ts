/** A waiting task, linked with the others of its group. */
export interface Node<T> {
  readonly task: T;
  readonly group: Group<T>;
  /** Order of arrival. */
  readonly sequence: number;
  before: Node<T> | undefined;
  behind: Node<T> | undefined;
  /** How many later tasks started while this one was first and did not fit. */
  bypassed: number;
}

/** Tasks of one priority and shape, in order of arrival. Groups in a heap are never empty. */
export interface Group<T> {
  readonly priority: number;
  readonly shape: string;
  head: Node<T> | undefined;
  tail: Node<T> | undefined;
  /** Where it is in the heap, -1 outside. */
  at: number;
  /** The group this one stands for in a second heap. */
  readonly twin?: Group<T>;
}

export interface GroupHeap<T> {
  first(): Group<T> | undefined;
  add(group: Group<T>): void;
  remove(group: Group<T>): void;
  /** Restores the order after the compared end of the group has changed. */
  fix(group: Group<T>): void;
}

/**
 * A binary heap of groups. By `head`, the first group holds the task that comes first of all; by `tail`, the one that
 * comes last of all.
 */
export const createGroupHeap = <T>(by: "head" | "tail" = "head"): GroupHeap<T> => {
  const heap: Group<T>[] = [];

  const precedes = (a: Group<T>, b: Group<T>): boolean =>
    by === "head"
      ? a.priority > b.priority || (a.priority === b.priority && a.head!.sequence < b.head!.sequence)
      : a.priority < b.priority || (a.priority === b.priority && a.tail!.sequence > b.tail!.sequence);

  const place = (group: Group<T>, at: number): void => {
    heap[at] = group;
    group.at = at;
  };

  const fix = (group: Group<T>): void => {
    let at = group.at;
    while (at > 0) {
      const parent = heap[(at - 1) >> 1]!;
      if (!precedes(group, parent)) break;
      place(parent, at);
      at = (at - 1) >> 1;
    }
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && precedes(heap[child + 1]!, heap[child]!)) child++;
      if (!precedes(heap[child]!, group)) break;
      place(heap[child]!, at);
      at = child;
    }
    place(group, at);
  };

  return {
    first: () => heap[0],

    add(group) {
      group.at = heap.length;
      heap.push(group);
      fix(group);
    },

    remove(group) {
      const { at } = group;
      if (at < 0) return;
      group.at = -1;
      const last = heap.pop()!;
      if (last === group) return;
      place(last, at);
      fix(last);
    },

    fix,
  };
};
