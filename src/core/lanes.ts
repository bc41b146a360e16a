import type { AgentId, Row } from "./ids.ts";
import { sortedPlaces } from "./radix.ts";
import type { Attempt, Run } from "./run.ts";
import { peek } from "./table.ts";

/**
 * On which lane of its host each attempt is drawn. The state knows hosts and times, not slots: so each attempt, in the
 * order of their starts, takes the first lane of its host that was free then. A lane, once given, stays: what comes
 * later is put behind what is there. Found out in turns, and only for what is new since the last time.
 */
export interface Lanes {
  /** By row, of the latest attempt: its lane, counted from 1, and its number; 0: it has none yet. */
  readonly lane: Uint32Array;
  readonly attempt: Uint16Array;
  /** The same of earlier attempts, by row and number. */
  readonly past: Map<Row, Map<number, number>>;
  readonly places: { readonly host: string; readonly slot: number }[];
  readonly byHost: Map<string, number[]>;
  /** By lane: until when it is taken; Infinity while its last attempt runs, which is then in `holders`. */
  readonly freeAt: number[];
  readonly holders: Map<number, { readonly row: Row; readonly n: number }>;
}

export const createLanes = (total: number): Lanes => ({
  lane: new Uint32Array(total),
  attempt: new Uint16Array(total),
  past: new Map(),
  places: [],
  byHost: new Map(),
  freeAt: [],
  holders: new Map(),
});

/** Rows looked at in one turn: a few milliseconds at most. */
const PER_TURN = 50_000;

/** Attempts that have no lane yet, in columns: there may be a million of them. */
interface Bars {
  readonly row: Row[];
  readonly n: number[];
  readonly agent: AgentId[];
  readonly start: number[];
  /** 0: it runs. */
  readonly end: number[];
}

const add = (bars: Bars, row: Row, n: number, agent: AgentId, start: number, end: number): void => {
  bars.row.push(row);
  bars.n.push(n);
  bars.agent.push(agent);
  bars.start.push(start);
  bars.end.push(end);
};

const pastOf = (run: Run, row: Row, n: number): Attempt | undefined =>
  run.history.get(row)?.find((attempt) => attempt.n === n);

/** Lanes whose last attempt has ended since are free from then on. */
const release = (run: Run, lanes: Lanes): void => {
  for (const [lane, { row, n }] of lanes.holders) {
    const page = peek(run.table, row);
    const slot = row % run.table.pageRows;
    const isLatest = page?.attempt[slot] === n && page.started[slot]! > 0;
    const ended = isLatest ? page.finished[slot]! : (pastOf(run, row, n)?.finished ?? run.started);
    if (ended === 0) continue;
    lanes.freeAt[lane] = ended;
    lanes.holders.delete(lane);
  }
};

/** Notes that the latest attempt of a row is another: the lane of the one before is that attempt's. */
const setAside = ({ lane, attempt, past }: Lanes, row: Row): void => {
  if (lane[row] === 0) return;
  let mine = past.get(row);
  if (mine === undefined) past.set(row, (mine = new Map()));
  mine.set(attempt[row]!, lane[row]!);
  lane[row] = 0;
};

function* newBars(run: Run, lanes: Lanes): Generator<undefined, Bars> {
  const bars: Bars = { row: [], n: [], agent: [], start: [], end: [] };
  const { pageRows, pages } = run.table;
  let seen = 0;
  for (const [index, page] of pages.entries()) {
    if (page === undefined) continue;
    const first = index * pageRows;
    const count = Math.min(pageRows, run.total - first);
    for (let slot = 0; slot < count; slot += 1) {
      const row = first + slot;
      const start = page.started[slot]!;
      if (start === 0) continue;
      const n = page.attempt[slot]!;
      if (lanes.lane[row] !== 0 && lanes.attempt[row] === n) continue;
      setAside(lanes, row);
      add(bars, row, n, page.agent[slot]!, start, page.finished[slot]!);
    }
    seen += count;
    if (seen >= PER_TURN) {
      seen = 0;
      yield;
    }
  }
  for (const [row, attempts] of run.history) {
    for (const { n, agent, started, finished } of attempts) {
      if (started === 0 || lanes.past.get(row)?.has(n) === true) continue;
      if (lanes.lane[row] !== 0 && lanes.attempt[row] === n) setAside(lanes, row);
      else add(bars, row, n, agent, started, finished || started);
    }
    seen += 1;
    if (seen % PER_TURN === 0) yield;
  }
  return bars;
}

const place = (lanes: Lanes, host: string, start: number, end: number): number => {
  let mine = lanes.byHost.get(host);
  if (mine === undefined) lanes.byHost.set(host, (mine = []));
  let lane = mine.find((each) => lanes.freeAt[each]! <= start);
  if (lane === undefined) {
    lane = lanes.places.length;
    lanes.places.push({ host, slot: mine.length });
    mine.push(lane);
  }
  lanes.freeAt[lane] = end === 0 ? Infinity : Math.max(start, end);
  return lane;
};

/** Gives a lane to every attempt that has begun and has none. */
export function* updateLanes(run: Run, lanes: Lanes, hostOf: (agent: AgentId) => string): Generator<undefined, void> {
  release(run, lanes);
  const bars = yield* newBars(run, lanes);
  const keys = new Uint32Array(bars.row.length);
  for (let i = 0; i < keys.length; i += 1) keys[i] = Math.max(0, Math.min(0xffff_ffff, bars.start[i]! - run.started));
  const order = yield* sortedPlaces(keys);
  for (let nth = 0; nth < order.length; nth += 1) {
    if (nth % PER_TURN === PER_TURN - 1) yield;
    const i = order[nth]!;
    const [row, n, end] = [bars.row[i]!, bars.n[i]!, bars.end[i]!];
    const lane = place(lanes, hostOf(bars.agent[i]!), bars.start[i]!, end);
    if (end === 0) lanes.holders.set(lane, { row, n });
    const page = peek(run.table, row)!;
    const slot = row % run.table.pageRows;
    if (page.attempt[slot] === n && page.started[slot]! > 0) {
      lanes.lane[row] = lane + 1;
      lanes.attempt[row] = n;
      continue;
    }
    let past = lanes.past.get(row);
    if (past === undefined) lanes.past.set(row, (past = new Map()));
    past.set(n, lane + 1);
  }
}
