import { type Bars, COLOURS, barAt, paintLane } from "../format/bars.ts";
import { multiples, tickSeconds } from "../format/scale.ts";
import { duration } from "../format/time.ts";

/**
 * Bars on lanes, painted pixel by pixel: a lane is composed once as a line of pixels and copied, so that a hundred thousand
 * bars cost about as much as a screen.
 */

export interface View {
  /** Milliseconds since the run began. */
  from: number;
  to: number;
  /** How far the lanes are scrolled, in CSS pixels. */
  top: number;
}

export interface Look {
  readonly palette: Uint32Array;
  readonly ground: number;
  readonly paper: string;
  readonly stripe: number;
  readonly ink: string;
  readonly line: string;
  readonly font: string;
}

export const AXIS = 24;

const packed = (colour: string): number => {
  const [r = 0, g = 0, b = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return (255 << 24) | (b << 16) | (g << 8) | r;
};

/** Colours as the style sheet has them now, in numbers. */
export const lookOf = (element: HTMLElement): Look => {
  const probe = document.createElement("span");
  element.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const look = {
    palette: Uint32Array.from(COLOURS, (name) => packed(colour(name))),
    ground: packed(colour("surface")),
    paper: colour("surface"),
    stripe: packed(colour("raised")),
    ink: colour("ink-3"),
    line: colour("line"),
    font: `11px ${getComputedStyle(element).fontFamily}`,
  };
  probe.remove();
  return look;
};

export const laneHeight = (lanes: number, height: number): number =>
  Math.max(5, Math.min(20, Math.floor((height - AXIS) / Math.max(1, lanes))));

export const gutter = (width: number): number => (width < 600 ? 64 : 150);

interface Scene {
  readonly bars: Bars;
  readonly names: readonly string[];
  readonly view: View;
  readonly now: number;
  readonly look: Look;
}

let pixels = new Uint32Array(0);
let image: ImageData | undefined;

/** One buffer for all frames: it is made again only when the size changes. */
const bufferOf = (width: number, height: number): ImageData => {
  if (image?.width === width && image.height === height) return image;
  image = new ImageData(width, height);
  pixels = new Uint32Array(image.data.buffer);
  return image;
};

const paintBars = (context: CanvasRenderingContext2D, scene: Scene, left: number, ratio: number): void => {
  const { canvas } = context;
  const height = laneHeight(scene.bars.lanes, canvas.height / ratio) * ratio;
  const top = Math.round(AXIS * ratio);
  const width = canvas.width - Math.round(left * ratio);
  const room = canvas.height - top;
  if (width <= 0 || room <= 0) return;
  const picture = bufferOf(width, room);
  pixels.fill(scene.look.ground);
  const scrolled = scene.view.top * ratio;
  const line = new Uint32Array(width);
  const view = { from: scene.view.from, to: scene.view.to, now: scene.now };
  const last = Math.min(scene.bars.lanes, Math.ceil((scrolled + room) / height));
  for (let lane = Math.floor(scrolled / height); lane < last; lane++) {
    paintLane(line, scene.bars, lane, view, scene.look.palette, lane % 2 === 0 ? scene.look.ground : scene.look.stripe);
    const from = Math.max(0, Math.round(lane * height - scrolled));
    const until = Math.min(room, Math.round((lane + 1) * height - scrolled) - 1);
    for (let y = from; y < until; y++) pixels.set(line, y * width);
  }
  context.putImageData(picture, canvas.width - width, top);
};

const paintAxes = (context: CanvasRenderingContext2D, scene: Scene, left: number, ratio: number): void => {
  const width = context.canvas.width / ratio;
  const height = context.canvas.height / ratio;
  const { view, look, bars, names } = scene;
  context.font = look.font;
  context.fillStyle = look.ink;
  context.textBaseline = "middle";
  const lane = laneHeight(bars.lanes, height);
  context.save();
  context.beginPath();
  context.rect(0, AXIS, left - 6, height - AXIS);
  context.clip();
  // as many names as there is room for
  const every = Math.max(1, Math.ceil(13 / lane));
  for (let i = 0; i < bars.lanes; i += every) {
    const y = AXIS + i * lane - view.top + lane / 2;
    if (y > AXIS - lane && y < height + lane) context.fillText(names[i]!, 8, y);
  }
  context.restore();
  const seconds = (view.to - view.from) / 1000;
  const step = tickSeconds(seconds, Math.max(2, (width - left) / 90)) * 1000;
  context.strokeStyle = look.line;
  context.textAlign = "center";
  for (const tick of multiples(view.from, view.to, step)) {
    const x = left + ((tick - view.from) / (view.to - view.from)) * (width - left);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, AXIS - 5);
    context.lineTo(Math.round(x) + 0.5, AXIS);
    context.stroke();
    if (x > left + 14 && x < width - 20) context.fillText(tick === 0 ? "0" : duration(tick / 1000), x, AXIS / 2);
  }
  context.textAlign = "left";
};

export const paint = (context: CanvasRenderingContext2D, scene: Scene, ratio: number): void => {
  const left = gutter(context.canvas.width / ratio);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = scene.look.paper;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  paintBars(context, scene, left, ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  paintAxes(context, scene, left, ratio);
};

/** The bar below a point in CSS pixels. */
export const barBelow = (bars: Bars, view: View, width: number, height: number, x: number, y: number) => {
  const left = gutter(width);
  if (x < left || y < AXIS) return undefined;
  const perPixel = (view.to - view.from) / (width - left);
  const lane = Math.floor((y - AXIS + view.top) / laneHeight(bars.lanes, height));
  return barAt(bars, lane, view.from + (x - left) * perPixel, perPixel);
};
