import { type Group, type Run, type Shape, expectedMs, shapeOfRow } from "../core/run.ts";
import { isReady, peek } from "../core/table.ts";

/**
 * The waiting tasks, as ranges of rows, apart by shape and priority. A million waiting tasks of an array are one entry.
 * Entries may go stale (a task was cancelled while it waited): rows are looked at again when they are taken.
 */

interface Range {
  readonly run: Run;
  readonly group: Group;
  /** Order of arrival, over all shapes. */
  readonly seq: number;
  from: number;
  end: number;
}

interface Lane {
  readonly priority: number;
  ranges: Range[];
  /** Ranges before this one are used up. */
  head: number;
}

/** Rows taken from the head of a queue: contiguous, of one group. */
export interface Taken {
  readonly run: Run;
  readonly group: Group;
  readonly from: number;
  readonly count: number;
}

export interface ShapeQueue {
  readonly shape: Shape;
  /** Highest priority first. */
  readonly lanes: Lane[];
  waiting: number;
}

export const createShapeQueue = (shape: Shape): ShapeQueue => ({ shape, lanes: [], waiting: 0 });

const laneOf = (queue: ShapeQueue, priority: number): Lane => {
  let index = 0;
  while (index < queue.lanes.length && queue.lanes[index]!.priority > priority) index += 1;
  const found = queue.lanes[index];
  if (found?.priority === priority) return found;
  const lane: Lane = { priority, ranges: [], head: 0 };
  queue.lanes.splice(index, 0, lane);
  return lane;
};

export const pushRange = (
  queue: ShapeQueue,
  run: Run,
  group: Group,
  from: number,
  count: number,
  seq: number,
): void => {
  const lane = laneOf(queue, group.spec.priority);
  const last = lane.ranges.at(-1);
  if (
    last !== undefined &&
    lane.ranges.length > lane.head &&
    last.run === run &&
    last.group === group &&
    last.end === from
  )
    last.end += count;
  else lane.ranges.push({ run, group, seq, from, end: from + count });
  queue.waiting += count;
};

/** Whether a row may still be placed, and by this queue. */
const stillWaits = (run: Run, group: Group, row: number, shape: Shape): boolean => {
  const page = peek(run.table, row);
  if (page !== undefined) {
    const slot = row % run.table.pageRows;
    if (!isReady(page.state[slot]!, page.agent[slot]!)) return false;
  }
  return group.rowShapes === undefined || shapeOfRow(group, row).key === shape.key;
};

const dropUsed = (queue: ShapeQueue, lane: Lane): void => {
  lane.head += 1;
  if (lane.head === lane.ranges.length) queue.lanes.splice(queue.lanes.indexOf(lane), 1);
  else if (lane.head > 1024 && lane.head * 2 > lane.ranges.length) {
    lane.ranges = lane.ranges.slice(lane.head);
    lane.head = 0;
  }
};

/** Takes up to `most` rows from the head; undefined when the queue is empty. Rows that no longer wait are passed over. */
export const takeRows = (queue: ShapeQueue, most: number): Taken | undefined => {
  for (;;) {
    const lane = queue.lanes[0];
    if (lane === undefined) {
      queue.waiting = 0;
      return undefined;
    }
    const range = lane.ranges[lane.head]!;
    while (range.from < range.end && !stillWaits(range.run, range.group, range.from, queue.shape)) {
      range.from += 1;
      queue.waiting -= 1;
    }
    const from = range.from;
    while (
      range.from < range.end &&
      range.from - from < most &&
      stillWaits(range.run, range.group, range.from, queue.shape)
    )
      range.from += 1;
    const count = range.from - from;
    queue.waiting -= count;
    if (range.from === range.end) dropUsed(queue, lane);
    if (count > 0) return { run: range.run, group: range.group, from, count };
  }
};

/** The next range to be served: what orders queues among each other. */
export const headOf = (queue: ShapeQueue): { priority: number; seq: number; run: Run; group: Group } | undefined => {
  const lane = queue.lanes[0];
  const range = lane?.ranges[lane.head];
  return lane === undefined || range === undefined
    ? undefined
    : { priority: lane.priority, seq: range.seq, run: range.run, group: range.group };
};

/** What the next tasks of a queue are expected to take: the sum of what is known, and of how many nothing is. */
export interface Sample {
  readonly tasks: number;
  readonly knownMs: number;
  readonly unknown: number;
}

/** Looks at no more than `most` tasks, those that are next. */
export const sampleOf = (queue: ShapeQueue, most: number): Sample => {
  let tasks = 0;
  let knownMs = 0;
  let unknown = 0;
  for (const lane of queue.lanes)
    for (let at = lane.head; at < lane.ranges.length && tasks < most; at += 1) {
      const { run, group, from, end } = lane.ranges[at]!;
      const count = Math.min(most - tasks, end - from);
      const each = expectedMs(run, group);
      tasks += count;
      if (each < 0) unknown += count;
      else knownMs += count * each;
    }
  return { tasks, knownMs, unknown };
};

/** Forgets everything of a run. */
export const dropRun = (queue: ShapeQueue, run: Run): void => {
  for (let index = queue.lanes.length - 1; index >= 0; index -= 1) {
    const lane = queue.lanes[index]!;
    const kept = lane.ranges.slice(lane.head).filter((range) => range.run !== run);
    lane.ranges = kept;
    lane.head = 0;
    if (kept.length === 0) queue.lanes.splice(index, 1);
  }
  queue.waiting = queue.lanes.reduce(
    (sum, lane) => sum + lane.ranges.reduce((n, range) => n + range.end - range.from, 0),
    0,
  );
};
