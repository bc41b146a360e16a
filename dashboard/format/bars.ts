import { stateWord } from "../../src/core/state-words.ts";
import type { TimelineView } from "../../src/api/timeline.ts";

/** The bars of a timeline in typed arrays, lane by lane and in order of time; and which of them lies where. Pure. */

export interface Bars {
  readonly lanes: number;
  /** Bars of lane `l` are `offsets[l]` to `offsets[l + 1]`. */
  readonly offsets: Int32Array;
  readonly start: Float64Array;
  /** Infinity while it runs. */
  readonly end: Float64Array;
  /** A place in COLOURS. */
  readonly colour: Uint8Array;
  /** Its place in the columns of the answer. */
  readonly source: Int32Array;
}

/** Bars are painted in these; later ones win where several share a pixel. */
export const COLOURS = ["waiting", "starting", "done", "running", "cancelled", "failed"] as const;

export const arrange = (view: Pick<TimelineView, "lanes" | "lane" | "start" | "end" | "state" | "states">): Bars => {
  const size = view.lane.length;
  const lanes = view.lanes.length;
  const offsets = new Int32Array(lanes + 1);
  for (const lane of view.lane) offsets[lane + 1]!++;
  for (let lane = 0; lane < lanes; lane++) offsets[lane + 1]! += offsets[lane]!;
  const next = offsets.slice();
  const order = new Int32Array(size);
  for (let i = 0; i < size; i++) order[next[view.lane[i]!]!++] = i;
  for (let lane = 0; lane < lanes; lane++) {
    const part = order.subarray(offsets[lane], offsets[lane + 1]);
    if (!isSorted(part, view.start)) part.sort((a, b) => view.start[a]! - view.start[b]!);
  }
  const colours = view.states.map((state) => COLOURS.findIndex((each) => each === stateWord(state)));
  const start = new Float64Array(size);
  const end = new Float64Array(size);
  const colour = new Uint8Array(size);
  order.forEach((from, i) => {
    start[i] = view.start[from]!;
    end[i] = view.end[from]! < 0 ? Infinity : view.end[from]!;
    colour[i] = Math.max(0, colours[view.state[from]!]!);
  });
  return { lanes, offsets, start, end, colour, source: order };
};

const isSorted = (part: Int32Array, start: readonly number[]): boolean => {
  for (let i = 1; i < part.length; i++) if (start[part[i - 1]!]! > start[part[i]!]!) return false;
  return true;
};

/** The first bar of a lane that has not ended before `time`. */
export const firstAfter = ({ offsets, end }: Bars, lane: number, time: number): number => {
  let [low, high] = [offsets[lane]!, offsets[lane + 1]!];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** The bar at a time, or the nearest within `slack`; undefined: there is none. */
export const barAt = (bars: Bars, lane: number, time: number, slack: number): number | undefined => {
  if (lane < 0 || lane >= bars.lanes) return undefined;
  const found = firstAfter(bars, lane, time - slack);
  return found < bars.offsets[lane + 1]! && bars.start[found]! <= time + slack ? found : undefined;
};

/**
 * One lane as a line of pixels: `line` is overwritten. A bar is at least a pixel wide; of those that share one, the worst
 * shows. Costs no more than the bars in sight.
 */
export const paintLane = (
  line: Uint32Array,
  bars: Bars,
  lane: number,
  view: { readonly from: number; readonly to: number; readonly now: number },
  palette: Uint32Array,
  ground: number,
): void => {
  line.fill(ground);
  const width = line.length;
  const scale = width / (view.to - view.from);
  const { start, end, colour, offsets } = bars;
  const last = offsets[lane + 1]!;
  let before = -1;
  let worst = 0;
  for (let i = firstAfter(bars, lane, view.from); i < last && start[i]! < view.to; i++) {
    const from = Math.max(0, Math.floor((start[i]! - view.from) * scale));
    const until = Math.min(width, Math.max(from + 1, Math.floor((Math.min(end[i]!, view.now) - view.from) * scale)));
    if (from === before && until <= from + 1) {
      // several in one pixel
      if (colour[i]! > worst) line[from] = palette[(worst = colour[i]!)]!;
      continue;
    }
    // a pixel between neighbours that are wide enough to be told apart
    line.fill(palette[colour[i]!]!, from, until - from > 3 ? until - 1 : until);
    before = until - 1;
    worst = colour[i]!;
  }
};
