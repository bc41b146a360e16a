import { type Group, type Run, type Shape, isUniform, shapeOfRow } from "../core/run.ts";
import { isReady, peek } from "../core/table.ts";
import type { Entry, Room } from "./fit-list.ts";
import { type Lane, type Place, createPlaces } from "./places.ts";
import type { Row } from "../core/ids.ts";

/**
 * The waiting tasks, as ranges of rows in order: higher priority first, then in order of arrival. A million waiting
 * tasks of an array are one entry. Entries may go stale (a task was cancelled while it waited): rows are checked again
 * when they are taken. Entries are separated by where they may run, and those with ranks from the others.
 */

export interface WaitingRange extends Entry {
  readonly run: Run;
  readonly group: Group;
  readonly priority: number;
  /** Order of arrival across all entries. */
  readonly seq: number;
  readonly lane: Lane;
  readonly count: ShapeCount;
  from: number;
  end: number;
}

/** What waits of one shape. */
export interface ShapeCount {
  readonly shape: Shape;
  waiting: number;
  /** As of the last call of `sample`. */
  sample: Sample;
}

/** Rows taken: contiguous, of one group. */
export interface Taken {
  readonly from: number;
  readonly count: number;
}

/** What the next tasks of a shape are expected to take: the sum of what is known, and for how many nothing is known. */
export interface Sample {
  tasks: number;
  knownMs: number;
  unknown: number;
}

export interface Waiting {
  /** Tasks that wait, and those of them without ranks. */
  readonly total: number;
  readonly singles: number;
  readonly shapes: ReadonlyMap<string, ShapeCount>;
  places(): Iterable<Place>;
  push(run: Run, group: Group, shape: Shape, from: number, count: number): void;
  /** Takes up to `most` rows of a range, skipping those that no longer wait; undefined when none does. */
  take(range: WaitingRange, most: number): Taken | undefined;
  first(): WaitingRange | undefined;
  /** Forgets everything about a run. */
  dropRun(run: Run): void;
  /** Takes new samples of all shapes, each of the next `most` tasks at most. */
  sample(most: number): void;
  [Symbol.iterator](): Iterator<WaitingRange>;
}

const NO_SAMPLE: Sample = { tasks: 0, knownMs: 0, unknown: 0 };

/** Whether a row may still be placed, and with this shape. */
const stillWaits = ({ run, group, shape }: WaitingRange, row: Row): boolean => {
  const page = peek(run.table, row);
  if (page !== undefined) {
    const slot = row % run.table.pageRows;
    if (!isReady(page.state[slot]!, page.agent[slot]!)) return false;
  }
  if (isUniform(group)) return true;
  const now = shapeOfRow(group, row);
  return now === shape || now.key === shape.key;
};

export const isBefore = (a: WaitingRange, b: WaitingRange): boolean =>
  a.priority === b.priority ? a.seq < b.seq : a.priority > b.priority;

/**
 * Visits, in order, the ranges in these places that fit into a room, up to `end` if given, until `visit` says no. The
 * room may shrink and ranges may be used up meanwhile.
 */
export const visitFitting = (
  places: readonly Place[],
  room: Room,
  end: WaitingRange | undefined,
  visit: (range: WaitingRange) => boolean,
): void => {
  const lanes = places.flatMap((place) => place.lanes).toSorted((a, b) => b.priority - a.priority);
  for (let first = 0; first < lanes.length;) {
    let behind = first + 1;
    while (behind < lanes.length && lanes[behind]!.priority === lanes[first]!.priority) behind += 1;
    const from = new Float64Array(behind - first);
    for (;;) {
      let best: WaitingRange | undefined;
      let of = 0;
      for (let i = first; i < behind; i += 1) {
        const next = lanes[i]!.ranges.next(from[i - first]!, room);
        if (next !== undefined && (best === undefined || next.seq < best.seq)) [best, of] = [next, i - first];
      }
      if (best === undefined) break;
      if (end !== undefined && !isBefore(best, end)) return;
      from[of] = best.at + 1;
      if (!visit(best)) return;
    }
    first = behind;
  }
};

const takeSamples = (places: Iterable<Place>, shapes: ReadonlyMap<string, ShapeCount>, most: number): void => {
  for (const count of shapes.values()) count.sample = { ...NO_SAMPLE };
  let open = shapes.size;
  for (const { lanes } of places)
    for (const { ranges } of lanes)
      for (const { group, count, from, end } of ranges) {
        const { sample } = count;
        if (sample.tasks >= most) continue;
        const tasks = Math.min(most - sample.tasks, end - from);
        const each = group.expectedMs;
        sample.tasks += tasks;
        if (each < 0) sample.unknown += tasks;
        else sample.knownMs += tasks * each;
        if (sample.tasks >= most && (open -= 1) === 0) return;
      }
};

export const createWaiting = (): Waiting => {
  const places = createPlaces();
  const shapes = new Map<string, ShapeCount>();
  /** Entries of each run: most runs that end have none left. */
  const entries = new Map<Run, number>();
  let total = 0;
  let singles = 0;
  let seq = 0;

  const countOf = (shape: Shape): ShapeCount => {
    let count = shapes.get(shape.key);
    if (count === undefined) shapes.set(shape.key, (count = { shape, waiting: 0, sample: NO_SAMPLE }));
    return count;
  };

  const change = (count: ShapeCount, by: number): void => {
    count.waiting += by;
    total += by;
    if (count.shape.ranks === undefined) singles += by;
    if (count.waiting === 0) shapes.delete(count.shape.key);
  };

  const remove = (range: WaitingRange): void => {
    const { lane, run } = range;
    lane.ranges.remove(range);
    const left = entries.get(run)! - 1;
    if (left === 0) entries.delete(run);
    else entries.set(run, left);
    places.prune(lane);
  };

  const all = function* (): Generator<WaitingRange> {
    for (const place of places.values()) for (const lane of place.lanes) yield* lane.ranges;
  };

  return {
    get total() {
      return total;
    },
    get singles() {
      return singles;
    },
    shapes,
    places: places.values,
    push: (run, group, shape, from, count) => {
      const { priority } = group.spec;
      const lane = places.lane(shape, priority);
      const last = lane.ranges.last();
      if (last?.group === group && last.run === run && last.end === from && last.shape.key === shape.key) {
        last.end += count;
        return change(last.count, count);
      }
      seq += 1;
      const counted = countOf(shape);
      lane.ranges.push({
        run,
        group,
        shape,
        priority,
        seq,
        lane,
        count: counted,
        from,
        end: from + count,
        at: -1,
      });
      entries.set(run, (entries.get(run) ?? 0) + 1);
      change(counted, count);
    },
    take: (range, most) => {
      const begun = range.from;
      while (range.from < range.end && !stillWaits(range, range.from)) range.from += 1;
      const from = range.from;
      const end = Math.min(range.end, from + most);
      while (range.from < end && stillWaits(range, range.from)) range.from += 1;
      change(range.count, begun - range.from);
      if (range.from === range.end) remove(range);
      return range.from === from ? undefined : { from, count: range.from - from };
    },
    first: () => {
      let best: WaitingRange | undefined;
      for (const { lanes } of places.values()) {
        const first = lanes[0]!.ranges.first()!;
        if (best === undefined || isBefore(first, best)) best = first;
      }
      return best;
    },
    dropRun: (run) => {
      if (!entries.has(run)) return;
      for (const range of Array.from(all()).filter((each) => each.run === run)) {
        change(range.count, range.from - range.end);
        remove(range);
      }
    },
    sample: (most) => takeSamples(places.values(), shapes, most),
    [Symbol.iterator]: all,
  };
};
