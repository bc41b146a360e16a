import { type Bars, arrange } from "../format/bars.ts";
import { AXIS, type Look, type View, laneHeight, lookOf, paint } from "./gantt.ts";

/** A canvas with bars that can be moved and zoomed. */

const CLOSEST = 10;

/** Everything the canvas does with a view, without the framework: it draws once a frame, whatever happens in between. */
export const createStage = (canvas: HTMLCanvasElement) => {
  const context = canvas.getContext("2d", { alpha: false })!;
  let look: Look = lookOf(canvas.parentElement!);
  let frame = 0;
  const scene: { bars: Bars; names: readonly string[]; view: View; now: number } = {
    bars: arrange({ lanes: [], lane: [], start: [], end: [], state: [], states: [] }),
    names: [],
    view: { from: 0, to: 1, top: 0 },
    now: 0,
  };
  const draw = (): void => {
    frame = 0;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    paint(context, { ...scene, look }, ratio);
  };
  const later = (): void => {
    if (frame === 0) frame = requestAnimationFrame(draw);
  };
  return {
    scene,
    later,
    lookAgain: (): void => {
      look = lookOf(canvas.parentElement!);
      later();
    },
    stop: (): void => cancelAnimationFrame(frame),
  };
};

/** Keeps a view within the run and its lanes. */
export const bounded = (view: View, until: number, lanes: number, height: number): View => {
  const most = until * 1.05 + 1000;
  const span = Math.min(most, Math.max(CLOSEST, view.to - view.from));
  const from = Math.min(Math.max(-span * 0.05, view.from), Math.max(0, most - span));
  const room = Math.max(0, lanes * laneHeight(lanes, height) - (height - AXIS));
  return { from, to: from + span, top: Math.min(room, Math.max(0, view.top)) };
};
