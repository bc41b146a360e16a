import type { Sums } from "../api/overview.ts";
import { SPANS, type SeriesService, type Span } from "../api/series.ts";
import { repeatTimer } from "../long-timer.ts";
import { type Ring, type RingShape, createRing } from "../metrics/rings.ts";

/** How things went since this server started, in rings of fixed size: about 120 steps for each span. */

const SHAPES: Readonly<Record<Span, RingShape>> = {
  "10m": { stepMs: 5000, steps: 120 },
  "1h": { stepMs: 30_000, steps: 120 },
  "1d": { stepMs: 600_000, steps: 144 },
  "7d": { stepMs: 3_600_000, steps: 168 },
};

/** Between two looks; the shortest step has one of its own. */
const LOOK_MS = 5000;

export interface Series extends SeriesService {
  close(): void;
}

const COUNTED = ["done", "failed", "cancelled"] as const;

const sumOf = (resources: Sums["resources"], name: string, which: "used" | "total"): number =>
  resources.reduce(
    (sum, each) => (each.resource === name ? sum + (each[which] === Infinity ? 0 : each[which]) : sum),
    0,
  );

const measuredOf = ({ tasks, resources }: Sums): number[] => [
  tasks.running,
  tasks.waiting,
  tasks.ready,
  sumOf(resources, "cpus", "used"),
  sumOf(resources, "cpus", "total"),
  sumOf(resources, "gpus", "used"),
  sumOf(resources, "gpus", "total"),
];

export const createSeries = (sums: () => Sums, clock: () => number): Series => {
  const rings = new Map<Span, Ring>(SPANS.map((span) => [span, createRing(SHAPES[span], COUNTED.length, 7)]));
  let last = sums().ended;

  const look = (): void => {
    const now = sums();
    const counted = COUNTED.map((name) => now.ended[name] - last[name]);
    last = { ...now.ended };
    const measured = measuredOf(now);
    for (const ring of rings.values()) ring.add(clock(), counted, measured);
  };
  const timer = repeatTimer(LOOK_MS, look);

  return {
    series: (span) => {
      look();
      const { time, values } = rings.get(span)!.columns();
      const [done, failed, cancelled, running, waiting, ready, coresUsed, coresTotal, gpusUsed, gpusTotal] = values as [
        number[],
        number[],
        number[],
        number[],
        number[],
        number[],
        number[],
        number[],
        number[],
        number[],
      ];
      const step = SHAPES[span].stepMs / 1000;
      const gauges = { running, waiting, ready, coresUsed, coresTotal, gpusUsed, gpusTotal };
      return { span, step, time, done, failed, cancelled, ...gauges };
    },
    close: () => timer.stop(),
  };
};
