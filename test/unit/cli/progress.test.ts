import { expect, test } from "vitest";
import { bar, etaOf, progressLine, progressText, rateMeter } from "../../../src/cli/render/progress.ts";
import { PLAIN, styleFor } from "../../../src/cli/render/style.ts";
import { columnsOf } from "../../../src/cli/render/text.ts";
import { sampleRun } from "./sample.ts";

const options = { unicode: false, style: PLAIN, rate: 210 };

test("the bar has exactly its width and is full only at the end", () => {
  expect(bar(0.5, 10, false)).toBe("#####-----");
  expect(bar(0.999, 10, false)).toBe("#########-");
  expect(bar(1, 4, true)).toBe("████");
  expect(bar(0.45, 4, true)).toBe("█▊  ");
  expect(bar(7, 4, false)).toBe("####");
});

test("the line holds everything where there is room", () => {
  expect(progressLine(sampleRun(), { ...options, width: 100 })).toBe(
    "3 docking [##############-----------------------]  402/1,000  2 failed  8 running  210/s  ETA 1m 15s",
  );
});

test("what does not fit is left out, the least important first", () => {
  const lines = [79, 60, 50, 40, 30, 20, 9, 5].map((width) => progressLine(sampleRun(), { ...options, width }));
  expect(lines).toEqual([
    "3 docking [######----------]  402/1,000  2 failed  8 running  210/s  ETA 1m 15s",
    "[#####---------]  402/1,000  2 failed  8 running  ETA 1m 15s",
    "[######---------]  402/1,000  2 failed  ETA 1m 15s",
    "[######-----------]  402/1,000  2 failed",
    "[######-----------]  402/1,000",
    "402/1,000",
    "402/1,000",
    "402/1",
  ]);
});

test("the line is never wider than the terminal, with colour and without", () => {
  const runs = [
    sampleRun(),
    sampleRun({ name: "日本語".repeat(40), total: 10_000_000, counts: { DONE: 1_234_567, FAILED: 12, CANCELED: 99 } }),
    sampleRun({ total: 1, counts: {}, eta: null }),
  ];
  for (const run of runs)
    for (let width = 1; width <= 140; width++)
      for (const unicode of [true, false])
        for (const note of [undefined, "canceling"]) {
          const line = progressLine(run, { width, unicode, style: styleFor(true), rate: 1234.5, note });
          expect(columnsOf(line)).toBeLessThanOrEqual(width);
        }
});

test("a note takes the place of the time to go", () => {
  const line = progressLine(sampleRun(), { ...options, width: 100, note: "canceling" });
  expect(line).toMatch(/canceling$/);
  expect(line).not.toMatch(/ETA/);
});

const RANGE = { p10: "2026-11-15T10:01:00.000Z", p50: "2026-11-15T10:01:15.000Z", p90: "2026-11-15T10:02:00.000Z" };

test("row 001-12: the range in which it ends stands behind the time to go, and is the first to be left out", () => {
  const run = sampleRun({ etaRange: RANGE });
  const wide = progressLine(run, { ...options, width: 110 });
  expect(wide).toMatch(/ {2}ETA 1m 15s {2}\(1m 00s-2m 00s\)$/);
  expect(progressLine(run, { ...options, width: 60 })).toMatch(/ {2}8 running {2}ETA 1m 15s$/);
  expect(progressText(run, 210)).toMatch(/, ETA 1m 15s \(1m 00s to 2m 00s\)$/);
  expect(progressText(sampleRun({ eta: null, etaReason: "nothing is known" }), undefined)).not.toMatch(/ETA/);
});

test("a pipe gets whole sentences", () => {
  expect(progressText(sampleRun(), 210)).toBe("run 3: 402/1,000 (40%), 2 failed, 8 running, 210 tasks/s, ETA 1m 15s");
  expect(progressText(sampleRun({ state: "DONE", counts: { DONE: 1000 } }), undefined)).toBe(
    "run 3: 1,000/1,000 (100%)",
  );
});

test("the rate follows the last seconds; the time to go is the server's word, else the rate's", () => {
  const meter = rateMeter(1000);
  expect(meter.rate()).toBeUndefined();
  meter.add(0, 0);
  meter.add(100, 50);
  expect(meter.rate()).toBeUndefined();
  for (let at = 200; at <= 5000; at += 100) meter.add(at, at / 10);
  expect(meter.rate()).toBe(100);
  for (let at = 5100; at <= 8000; at += 100) meter.add(at, 500);
  expect(meter.rate()).toBe(0);
  expect(etaOf(sampleRun({ eta: null }), 10)).toBeCloseTo(59.8);
  expect(etaOf(sampleRun({ eta: null }), 0)).toBeUndefined();
  expect(etaOf(sampleRun({ state: "DONE" }), 10)).toBeUndefined();
});
