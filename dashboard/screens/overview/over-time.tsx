import { useState } from "preact/hooks";
import type { SeriesView, Span } from "../../../src/api/series.ts";
import { now } from "../../data/clock.ts";
import { useFetched } from "../../data/fetched.ts";
import { perSecond, short } from "../../format/numbers.ts";
import { Card, Segments } from "../../parts/blocks.tsx";
import { Chart, type Series } from "../../parts/chart.tsx";

/** Throughput, tasks and utilisation over a span of time. */

const SPANS: Record<Span, number> = { "10m": 600, "1h": 3600, "1d": 86_400, "7d": 604_800 };
const NAMES: readonly Span[] = ["10m", "1h", "1d", "7d"];

/** Ends in a step as a rate; the last step is not over, so that it counts only with what has passed of it. */
const rates = (ends: readonly number[], { time, step }: SeriesView, until: number): number[] =>
  ends.map((value, i) => {
    const began = time[i]! - step * 1000;
    const seconds = i === ends.length - 1 ? Math.min(step, Math.max(step / 4, (until - began) / 1000)) : step;
    return value / seconds;
  });

const utilisation = (series: SeriesView): readonly Series[] => [
  { label: "cores in use", state: "running", values: series.coresUsed, kind: "area" },
  { label: "cores", state: "total", values: series.coresTotal, kind: "dashed" },
  ...(series.gpusTotal.some((total) => total > 0)
    ? ([
        { label: "GPUs in use", state: "done", values: series.gpusUsed, kind: "line" },
        { label: "GPUs", state: "done", values: series.gpusTotal, kind: "dashed" },
      ] as const)
    : []),
];

export const OverTime = () => {
  const [span, setSpan] = useState<Span>("10m");
  const { value: series } = useFetched<SeriesView>(`series?span=${span}`, Math.min(30_000, SPANS[span] * 5));
  const until = now.value;
  const shared = {
    time: series?.time ?? [],
    // a server that is younger than the span fills the width with what it has
    from: Math.max(until - SPANS[span] * 1000, Math.min(until - 60_000, series?.time[0] ?? 0)),
    to: until,
  };
  const throughput: readonly Series[] =
    series === undefined
      ? []
      : [
          { label: "done", state: "done", values: rates(series.done, series, until), kind: "area" },
          { label: "failed", state: "failed", values: rates(series.failed, series, until), kind: "area" },
        ];
  const tasks: readonly Series[] =
    series === undefined
      ? []
      : [
          { label: "running", state: "running", values: series.running, kind: "area" },
          { label: "ready", state: "ready", values: series.ready, kind: "area" },
          { label: "waiting", state: "waiting", values: series.waiting, kind: "area" },
        ];
  const spans = <Segments label="Span of time" options={NAMES} value={span} onChange={setSpan} />;
  return (
    <div class="charts">
      <Card title="Throughput" id="throughput" end={spans}>
        <Chart label="Tasks ended per second" {...shared} series={throughput} format={perSecond} />
      </Card>
      <Card title="Tasks" id="tasks-over-time">
        <Chart label="Tasks" {...shared} series={tasks} format={short} />
      </Card>
      <Card title="Utilisation" id="utilisation">
        <Chart
          label="Cores and GPUs"
          {...shared}
          series={series === undefined ? [] : utilisation(series)}
          format={short}
        />
      </Card>
    </div>
  );
};
