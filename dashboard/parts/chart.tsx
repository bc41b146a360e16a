import { useRef, useState } from "preact/hooks";
import { multiples, roundTop, tickSeconds } from "../format/scale.ts";
import { moment, soon } from "../format/time.ts";
import { now } from "../data/clock.ts";
import { useSize } from "./width.ts";

/** Some numbers over time, in SVG: a few hundred points, coloured by the style sheet. */

export interface Series {
  readonly label: string;
  /** Chooses the colour. */
  readonly state: string;
  readonly values: readonly number[];
  readonly kind: "area" | "line" | "dashed";
}

interface ChartProps {
  readonly label: string;
  /** Epoch milliseconds. */
  readonly time: readonly number[];
  readonly from: number;
  readonly to: number;
  /** Areas lie on each other, in their order. */
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
}

const LEFT = 38;
const BOTTOM = 18;
const TOP = 6;

/** Areas as they lie on each other; lines as they are. */
const stacked = (series: readonly Series[], points: number): readonly { lower: number[]; upper: number[] }[] => {
  const sums = Array.from({ length: points }, () => 0);
  return series.map(({ kind, values }) => {
    if (kind !== "area") return { lower: [], upper: [...values] };
    const lower = [...sums];
    values.forEach((value, i) => (sums[i]! += value));
    return { lower, upper: [...sums] };
  });
};

const nearest = (time: readonly number[], at: number): number => {
  let best = 0;
  time.forEach((each, i) => {
    if (Math.abs(each - at) < Math.abs(time[best]! - at)) best = i;
  });
  return best;
};

const Axes = ({ x, y, width, height, from, to, ticks, format }: AxesProps) => {
  const step = tickSeconds((to - from) / 1000, Math.max(2, width / 90)) * 1000;
  const zone = new Date(from).getTimezoneOffset() * 60_000;
  return (
    <g aria-hidden="true">
      {ticks.map((tick) => (
        <g key={tick}>
          <line class="grid" x1={LEFT} x2={width} y1={Math.round(y(tick))} y2={Math.round(y(tick))} />
          <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
            {format(tick)}
          </text>
        </g>
      ))}
      {multiples(from - zone, to - zone, step)
        .map((tick) => tick + zone)
        .map((tick) => (
          <text key={tick} x={x(tick)} y={height - 3} text-anchor={x(tick) > width - 20 ? "end" : "middle"}>
            {step < 60_000 ? moment(tick, tick) : soon(tick, now.peek())}
          </text>
        ))}
    </g>
  );
};

interface AxesProps {
  readonly x: (time: number) => number;
  readonly y: (value: number) => number;
  readonly width: number;
  readonly height: number;
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly number[];
  readonly format: (value: number) => string;
}

export const Chart = ({ label, time, from, to, series, format }: ChartProps) => {
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<SVGSVGElement>(null);
  const { width, height } = useSize(inner);
  const [at, setAt] = useState<number | undefined>(undefined);
  const layers = stacked(series, time.length);
  const { top, ticks } = roundTop(Math.max(0, ...layers.flatMap(({ upper }) => upper)));
  // the last step is not over yet
  const x = (when: number): number => LEFT + ((Math.min(when, to) - from) / Math.max(1, to - from)) * (width - LEFT);
  const y = (value: number): number => TOP + (1 - value / top) * (height - BOTTOM - TOP);
  const path = (values: readonly number[]): string =>
    values.map((value, i) => `${i === 0 ? "M" : "L"}${x(time[i]!).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const back = (values: readonly number[]): string =>
    values
      .map((value, i) => `L${x(time[i]!).toFixed(1)} ${y(value).toFixed(1)}`)
      .toReversed()
      .join("");
  const last = time.length - 1;
  const shown = at === undefined || at > last ? undefined : at;
  const latest = series.map(({ label: name, values }) => `${name} ${format(values[last] ?? 0)}`).join(", ");
  return (
    <div
      class="chart"
      ref={box}
      onPointerMove={(event) => {
        const left = inner.current!.getBoundingClientRect().left + LEFT;
        setAt(nearest(time, from + ((event.clientX - left) / Math.max(1, width - LEFT)) * (to - from)));
      }}
      onPointerLeave={() => setAt(undefined)}
    >
      <svg ref={inner} role="img" aria-label={`${label}: ${last < 0 ? "nothing yet" : `now ${latest}`}`}>
        {width > 0 && <Axes {...{ x, y, width, height, from, to, ticks, format }} />}
        {width > 0 &&
          last > 0 &&
          series.map(({ kind, state }, i) =>
            kind === "area" ? (
              <path class="area" data-state={state} d={`${path(layers[i]!.upper)}${back(layers[i]!.lower)}Z`} />
            ) : (
              <path class={`line ${kind}`} data-state={state} d={path(layers[i]!.upper)} />
            ),
          )}
        {shown !== undefined && (
          <line class="cursor" x1={x(time[shown]!)} x2={x(time[shown]!)} y1={TOP} y2={height - BOTTOM} />
        )}
      </svg>
      {shown !== undefined && (
        <div class="tip" style={tipPlace(x(time[shown]!), width)}>
          <div class="dim">{moment(time[shown]!, now.peek())}</div>
          {series.map(({ label: name, state, values }) => (
            <div key={name} class="row">
              <i class="swatch" data-state={state} /> {name} {format(values[shown] ?? 0)}
            </div>
          ))}
        </div>
      )}
    </div>
  );
};

const tipPlace = (x: number, width: number): Record<string, string> =>
  x > width / 2 ? { right: `${width - x + 26}px`, top: "14px" } : { left: `${x + 26}px`, top: "14px" };
