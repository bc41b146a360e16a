import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunView } from "../../../src/api/schemas.ts";
import type { TimelineView } from "../../../src/api/timeline.ts";
import { now } from "../../data/clock.ts";
import { go, to } from "../../data/route.ts";
import { theme } from "../../data/theme.ts";
import { arrange } from "../../format/bars.ts";
import { AXIS, type View, barBelow, gutter } from "../../parts/gantt.ts";
import { bounded, createStage } from "../../parts/gantt-stage.ts";
import { useSize } from "../../parts/width.ts";
import { BarText, nowOf } from "./bar-text.tsx";

/** The canvas of the timeline: moving, zooming, and what lies under the pointer. */

/** Few lanes need no more room than they fill. */
const FEW_LANES = 12;

interface Props {
  readonly run: RunView;
  readonly view: TimelineView;
  /** What is in sight is not all there, or not in full: load this. */
  readonly onRange: (range: { from: number; to: number } | undefined) => void;
}

/** The whole run with a little room behind it. */
const whole = (view: TimelineView): View => ({ from: 0, to: Math.max(1000, view.until) * 1.01, top: 0 });

interface Moves {
  readonly width: number;
  readonly pan: (dx: number, dy: number) => void;
  readonly zoom: (factor: number, x: number) => void;
  readonly all: () => void;
}

const keysOf = ({ width, pan, zoom, all }: Moves): Record<string, () => void> => ({
  ArrowLeft: () => pan(-width / 8, 0),
  ArrowRight: () => pan(width / 8, 0),
  ArrowUp: () => pan(0, -60),
  ArrowDown: () => pan(0, 60),
  "+": () => zoom(0.6, width / 2),
  "=": () => zoom(0.6, width / 2),
  "-": () => zoom(1 / 0.6, width / 2),
  "0": all,
});

export const TimelineCanvas = ({ run, view, onRange }: Props) => {
  const canvas = useRef<HTMLCanvasElement>(null);
  const stage = useRef<ReturnType<typeof createStage> | undefined>(undefined);
  const size = useSize(canvas);
  const drag = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined);
  const settle = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const [tip, setTip] = useState<{ x: number; y: number; bar: number } | undefined>(undefined);
  const bars = useMemo(() => arrange(view), [view]);
  const names = useMemo(
    () => view.lanes.map(({ host, slot, of }) => (of > 1 ? `${host} ×${of}` : `${host} ${slot}`)),
    [view],
  );

  useEffect(() => {
    stage.current = createStage(canvas.current!);
    stage.current.scene.view = whole(view);
    return () => stage.current!.stop();
  }, []);
  useEffect(() => stage.current!.lookAgain(), [theme.value, size]);
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const again = (): void => stage.current!.lookAgain();
    dark.addEventListener("change", again);
    return () => dark.removeEventListener("change", again);
  }, []);
  useEffect(() => {
    Object.assign(stage.current!.scene, { bars, names, now: nowOf(view) });
    stage.current!.later();
  }, [bars, names, now.value]);

  const { width, height } = size;
  const move = (change: (before: View) => View): void => {
    const { scene, later } = stage.current!;
    scene.view = bounded(change(scene.view), view.until, bars.lanes, height);
    later();
    setTip(undefined);
    clearTimeout(settle.current);
    settle.current = setTimeout(() => onRange(wanted(view, scene.view)), 250);
  };
  const zoom = (factor: number, x: number): void =>
    move((before) => {
      const at = before.from + ((x - gutter(width)) / Math.max(1, width - gutter(width))) * (before.to - before.from);
      return { ...before, from: at - (at - before.from) * factor, to: at + (before.to - at) * factor };
    });
  const pan = (dx: number, dy: number): void =>
    move((before) => {
      const ms = (dx / Math.max(1, width - gutter(width))) * (before.to - before.from);
      return { from: before.from + ms, to: before.to + ms, top: before.top + dy };
    });
  const below = (event: MouseEvent): number | undefined =>
    barBelow(bars, stage.current!.scene.view, width, height, event.offsetX, event.offsetY);

  // not passive: a zoom must not zoom the page as well
  useEffect(() => {
    const found = canvas.current!;
    const onWheel = (event: WheelEvent): void => {
      if (event.ctrlKey || event.metaKey) zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), event.offsetX);
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX || event.deltaY, 0);
      else {
        const before = stage.current!.scene.view.top;
        pan(0, event.deltaY);
        // at the end of the lanes the page itself scrolls
        if (stage.current!.scene.view.top === before) return;
      }
      event.preventDefault();
    };
    found.addEventListener("wheel", onWheel, { passive: false });
    return () => found.removeEventListener("wheel", onWheel);
  });

  const onKey = (event: KeyboardEvent): void => {
    const act = keysOf({ width, pan, zoom, all: () => move(() => whole(view)) })[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };

  return (
    <div class="timeline">
      <canvas
        ref={canvas}
        style={{ height: bars.lanes <= FEW_LANES ? `${bars.lanes * 22 + AXIS + 10}px` : "" }}
        tabIndex={0}
        role="application"
        aria-label="Timeline of tasks. Arrow keys move, plus and minus zoom, 0 shows all"
        onKeyDown={onKey}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          drag.current = { x: event.clientX, y: event.clientY, moved: false };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          const from = drag.current;
          if (from === undefined) {
            const bar = below(event);
            setTip(bar === undefined ? undefined : { x: event.offsetX, y: event.offsetY, bar });
            return;
          }
          const [dx, dy] = [from.x - event.clientX, from.y - event.clientY];
          if (!from.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
          pan(dx, dy);
          drag.current = { x: event.clientX, y: event.clientY, moved: true };
        }}
        onPointerUp={(event) => {
          const { moved } = drag.current ?? { moved: true };
          drag.current = undefined;
          const bar = moved ? undefined : below(event);
          if (bar !== undefined) go(to("runs", run.id, "task", view.task[bars.source[bar]!]!));
        }}
        onPointerLeave={() => setTip(undefined)}
      />
      {tip !== undefined && tip.bar < bars.source.length && (
        <div class="tip" style={tipPlace(tip, width)}>
          <BarText run={run} view={view} bar={bars.source[tip.bar]!} />
        </div>
      )}
    </div>
  );
};

/** What to load for what is in sight; undefined: everything. */
const wanted = (loaded: TimelineView, seen: View): { from: number; to: number } | undefined => {
  const span = seen.to - seen.from;
  if (span > 0.7 * loaded.until || (!loaded.folded && loaded.from <= 0 && loaded.to >= loaded.until)) return undefined;
  // rounded, so that small moves ask for the same
  const grain = 2 ** Math.floor(Math.log2(Math.max(1, span)));
  const from = Math.max(0, Math.floor((seen.from - span / 2) / grain) * grain);
  return { from, to: Math.max(from + 1, Math.ceil((seen.to + span / 2) / grain) * grain) };
};

const tipPlace = ({ x, y }: { readonly x: number; readonly y: number }, width: number): Record<string, string> =>
  x > width / 2 ? { right: `${width - x + 14}px`, top: `${y + 14}px` } : { left: `${x + 14}px`, top: `${y + 14}px` };
