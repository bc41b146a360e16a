import type { TimelineQuery } from "../api/timeline.ts";
import type { Lanes } from "../core/lanes.ts";
import { type Run, groupOf, indexOfRow } from "../core/run.ts";
import { TASK_STATES, Task, isFinalTask } from "../core/states.ts";
import { isoTime } from "./views.ts";

/** The bars of a run between two times, as columns of one JSON document that is made in pieces. */

const PER_TURN = 50_000;
/** Numbers in one piece of the text. */
const A_PIECE = 20_000;

/** One attempt that has begun; times in milliseconds since the run began, `end` -1 while it runs. */
type Visit = (lane: number, start: number, end: number, row: number, attempt: number, state: number) => void;

interface Range {
  readonly from: number;
  readonly to: number;
}

/** Every attempt that touches the range. */
function* bars(run: Run, lanes: Lanes, { from, to }: Range, visit: Visit): Generator<undefined, void> {
  const { pageRows, pages } = run.table;
  const begun = run.started;
  const tell = (lane: number, started: number, finished: number, row: number, n: number, state: number): void => {
    const start = Math.max(0, Math.round(started - begun));
    const end = finished === 0 ? -1 : Math.max(start, Math.round(finished - begun));
    if (start <= to && (end === -1 || end >= from)) visit(lane - 1, start, end, row, n, state);
  };
  let seen = 0;
  for (const [index, page] of pages.entries()) {
    if (page === undefined) continue;
    const first = index * pageRows;
    const count = Math.min(pageRows, run.total - first);
    for (let slot = 0; slot < count; slot += 1) {
      const lane = lanes.lane[first + slot]!;
      // what began after the lanes were found out has none yet
      if (lane === 0 || page.started[slot] === 0 || page.attempt[slot] !== lanes.attempt[first + slot]) continue;
      tell(lane, page.started[slot]!, page.finished[slot]!, first + slot, page.attempt[slot]!, page.state[slot]!);
    }
    seen += count;
    if (seen >= PER_TURN) {
      seen = 0;
      yield;
    }
  }
  for (const [row, attempts] of run.history) {
    for (const { n, started, finished, state = Task.FAILED } of attempts) {
      const lane = lanes.past.get(row)?.get(n);
      const ended = isFinalTask(state) ? state : Task.FAILED;
      if (lane !== undefined && started > 0) tell(lane, started, finished || started, row, n, ended);
    }
    seen += 1;
    if (seen % PER_TURN === 0) yield;
  }
}

type Column = Float64Array | Int32Array | Uint32Array;

interface Columns {
  readonly lane: Column;
  readonly start: Column;
  readonly end: Column;
  readonly task: Column;
  readonly attempt: Column;
  /** In the answer: `state`. */
  readonly shown: Column;
  readonly group: Column;
  readonly count?: Column;
  readonly failed?: Column;
}

const newColumns = (count: number): Columns => ({
  lane: new Uint32Array(count),
  start: new Float64Array(count),
  end: new Float64Array(count),
  task: new Float64Array(count),
  attempt: new Uint32Array(count),
  shown: new Uint32Array(count),
  group: new Uint32Array(count),
});

/** The lanes with bars in the order of hosts and slots, each with its place in the answer. */
const usedLanes = ({ places }: Lanes, used: ReadonlySet<number>, most: number) => {
  const order = [...used].toSorted((a, b) => {
    const [left, right] = [places[a]!, places[b]!];
    return left.host === right.host ? left.slot - right.slot : left.host < right.host ? -1 : 1;
  });
  /** How many are drawn as one. */
  const of = Math.max(1, Math.ceil(order.length / most));
  const placeOf = new Map(order.map((lane, i) => [lane, Math.floor(i / of)]));
  const lanes = order.flatMap((lane, i) =>
    i % of === 0 ? [{ ...places[lane]!, of: Math.min(of, order.length - i) }] : [],
  );
  return { lanes, placeOf };
};

function* eachBar(
  run: Run,
  lanes: Lanes,
  range: Range,
  count: number,
  placeOf: ReadonlyMap<number, number>,
): Generator<undefined, Columns> {
  const columns = newColumns(count);
  let at = 0;
  yield* bars(run, lanes, range, (lane, start, end, row, attempt, state) => {
    const place = placeOf.get(lane);
    // more may have begun since they were counted
    if (at === count || place === undefined) return;
    columns.lane[at] = place;
    columns.start[at] = start;
    columns.end[at] = end;
    columns.task[at] = indexOfRow(run, row);
    columns.attempt[at] = attempt;
    columns.shown[at] = state;
    columns.group[at] = groupOf(run.groups, row).index;
    at += 1;
  });
  return sliced(columns, at);
}

const sliced = (columns: Columns, count: number): Columns =>
  Object.fromEntries(
    Object.entries(columns).map(([name, column]) => [name, (column as Column).slice(0, count)]),
  ) as never;

/** Neighbours on a lane that begin within the same stretch of time are one bar. */
function* folds(
  run: Run,
  lanes: Lanes,
  range: Range,
  most: number,
  used: { readonly lanes: readonly unknown[]; readonly placeOf: ReadonlyMap<number, number> },
): Generator<undefined, Columns> {
  const stretches = Math.max(1, Math.floor(most / used.lanes.length));
  const ms = Math.max(1, (range.to - range.from) / stretches);
  const cells = used.lanes.length * stretches;
  const columns: Columns = { ...newColumns(cells), count: new Uint32Array(cells), failed: new Uint32Array(cells) };
  yield* bars(run, lanes, range, (lane, start, end, row, attempt, state) => {
    const place = used.placeOf.get(lane);
    if (place === undefined) return;
    const stretch = Math.min(stretches - 1, Math.floor(Math.max(0, start - range.from) / ms));
    const at = place * stretches + stretch;
    const isFirst = columns.count![at] === 0;
    columns.count![at]! += 1;
    if (state === Task.FAILED) columns.failed![at]! += 1;
    if (isFirst) {
      columns.lane[at] = place;
      columns.start[at] = start;
      columns.end[at] = end;
      columns.task[at] = indexOfRow(run, row);
      columns.attempt[at] = attempt;
      columns.shown[at] = state;
      columns.group[at] = groupOf(run.groups, row).index;
      return;
    }
    columns.start[at] = Math.min(columns.start[at]!, start);
    columns.end[at] = end === -1 || columns.end[at] === -1 ? -1 : Math.max(columns.end[at]!, end);
    if (state === Task.FAILED) columns.shown[at] = state;
  });
  return withoutEmpty(columns);
}

const withoutEmpty = (columns: Columns): Columns => {
  const kept: number[] = [];
  for (let i = 0; i < columns.count!.length; i += 1) if (columns.count![i]! > 0) kept.push(i);
  return Object.fromEntries(
    Object.entries(columns).map(([name, column]) => [name, Float64Array.from(kept, (i) => (column as Column)[i]!)]),
  ) as never;
};

/** What is drawn; it yields to let others have their turn. */
export function* timelineOf(
  run: Run,
  lanes: Lanes,
  query: TimelineQuery,
  now: number,
): Generator<undefined, { readonly head: object; readonly columns: Columns }> {
  const until = run.started === 0 ? 0 : Math.max(0, Math.round((run.finished > 0 ? run.finished : now) - run.started));
  const from = Math.min(query.from ?? 0, until);
  const range = { from, to: Math.max(from, Math.min(query.to ?? until, until)) };
  const used = new Set<number>();
  let count = 0;
  yield* bars(run, lanes, range, (lane) => {
    used.add(lane);
    count += 1;
  });
  const folded = count > query.most;
  const shown = usedLanes(lanes, used, query.most);
  const columns = folded
    ? yield* folds(run, lanes, range, query.most, shown)
    : yield* eachBar(run, lanes, range, count, shown.placeOf);
  return {
    head: {
      began: isoTime(run.started),
      until,
      ...range,
      bars: count,
      folded,
      lanes: shown.lanes,
      states: TASK_STATES,
    },
    columns,
  };
}

/** The document, in pieces that are short to make. */
export function* timelineText({
  head,
  columns,
}: {
  readonly head: object;
  readonly columns: Columns;
}): Generator<string> {
  yield JSON.stringify(head).slice(0, -1);
  for (const [name, column] of Object.entries(columns) as [string, Column][]) {
    yield `,${JSON.stringify(name === "shown" ? "state" : name)}:[`;
    for (let from = 0; from < column.length; from += A_PIECE)
      yield (from === 0 ? "" : ",") + column.subarray(from, from + A_PIECE).join();
    yield "]";
  }
  yield "}";
}
