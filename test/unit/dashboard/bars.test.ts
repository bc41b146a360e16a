import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COLOURS, arrange, barAt, paintLane } from "../../../dashboard/format/bars.ts";
import { traceOf } from "../../../dashboard/format/trace.ts";
import type { TimelineView } from "../../../src/api/timeline.ts";

const view = (bars: readonly (readonly [lane: number, start: number, end: number, state: number])[]): TimelineView => ({
  began: "2026-11-18T08:00:00.000Z",
  until: 1000,
  from: 0,
  to: 1000,
  bars: bars.length,
  folded: false,
  lanes: [
    { host: "n1", slot: 0, of: 1 },
    { host: "n1", slot: 1, of: 1 },
    { host: "n2", slot: 0, of: 1 },
  ],
  lane: bars.map(([lane]) => lane),
  start: bars.map(([, start]) => start),
  end: bars.map(([, , end]) => end),
  task: bars.map((_, i) => i),
  attempt: bars.map(() => 1),
  state: bars.map(([, , , state]) => state),
  states: ["DONE", "FAILED", "AGENT_EXECUTING"],
  group: bars.map(() => 0),
});

const palette = Uint32Array.from(COLOURS, (_, i) => i + 1);
const colour = (word: (typeof COLOURS)[number]): number => COLOURS.indexOf(word) + 1;
const paintedOf = (bars: TimelineView, lane: number, width = 100, range = { from: 0, to: 1000 }): number[] => {
  const line = new Uint32Array(width);
  paintLane(line, arrange(bars), lane, { ...range, now: 900 }, palette, 0);
  return [...line];
};

describe("bars of a timeline", () => {
  it("are painted where and as long as they ran, the worst on top, what runs until now", () => {
    const line = paintedOf(
      view([
        [0, 300, 400, 1],
        [0, 100, 200, 0],
        [0, 500, -1, 2],
        [1, 0, 1000, 0],
      ]),
      0,
    );
    expect(line[15]).toBe(colour("done"));
    expect(line[25]).toBe(0);
    expect(line[35]).toBe(colour("failed"));
    expect(line[85]).toBe(colour("running"));
    expect(line[95]).toBe(0);
  });

  it("a failure is seen among thousands in one pixel, wherever it lies", () => {
    fc.assert(
      fc.property(fc.nat(999), (failed) => {
        const many = Array.from({ length: 1000 }, (_, i) => [2, i, i + 1, i === failed ? 1 : 0] as const);
        expect(paintedOf(view(many), 2, 10)[Math.floor(failed / 100)]).toBe(colour("failed"));
      }),
    );
  });

  it("are found under a pointer, on their own lane alone", () => {
    const bars = arrange(
      view([
        [0, 100, 200, 0],
        [0, 300, 400, 0],
        [1, 250, 260, 0],
      ]),
    );
    expect(bars.source[barAt(bars, 0, 350, 1)!]).toBe(1);
    expect(bars.source[barAt(bars, 1, 245, 10)!]).toBe(2);
    expect(barAt(bars, 0, 250, 10)).toBeUndefined();
    expect(barAt(bars, 7, 250, 10)).toBeUndefined();
  });

  it("become a trace for Perfetto: hosts are processes, slots are threads", () => {
    const { traceEvents } = traceOf(
      3,
      view([
        [0, 100, 200, 0],
        [2, 300, -1, 2],
      ]),
      new Map([[0, "dock"]]),
    ) as {
      traceEvents: Record<string, unknown>[];
    };
    expect(traceEvents.filter(({ ph }) => ph === "M")).toHaveLength(5);
    expect(traceEvents.find(({ name }) => name === "3.0")).toMatchObject({
      ph: "X",
      ts: 100_000,
      dur: 100_000,
      pid: 1,
      tid: 0,
    });
    expect(traceEvents.find(({ name }) => name === "3.1")).toMatchObject({ dur: 700_000, pid: 2, cat: "running" });
  });
});
