import { describe, expect, it } from "vitest";
import { touch } from "../../../src/core/table.ts";
import { runView, taskView } from "../../../src/server/views.ts";
import { createDriver, group, runToEnd, spec } from "../core/model.ts";

const YEARS = 1_500_000_000_000;
const iso = (ms: number): string => new Date(ms).toISOString();

describe("times that come from several clocks", () => {
  it.each([YEARS, -YEARS])("are shown in order: an agent told times that are off by %i ms", (off) => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1)]));
    run.started = run.submitted + off;
    const now = run.submitted + 5000;
    const live = runView(run, now);
    expect(Date.parse(live.started!)).toBeGreaterThanOrEqual(run.submitted);
    expect(Date.parse(live.started!)).toBeLessThanOrEqual(now);
    expect(live.finished).toBeNull();
    runToEnd(driver, () => 0);
    const page = touch(run.table, 0);
    const end = run.finished;
    page.started[0] = page.assigned[0]! + off;
    page.finished[0] = page.assigned[0]! - off;
    const over = runView(run, now);
    expect(over.finished).toBe(iso(end));
    expect(Date.parse(over.started!)).toBeGreaterThanOrEqual(run.submitted);
    expect(Date.parse(over.started!)).toBeLessThanOrEqual(end);
    const [attempt] = taskView(driver.state, run, 0, null).attempts;
    const [assigned, started, finished] = [attempt!.assigned, attempt!.started, attempt!.finished].map((text) =>
      Date.parse(text!),
    );
    expect(started).toBeGreaterThanOrEqual(assigned!);
    expect(finished).toBeGreaterThanOrEqual(started!);
    expect(finished).toBeLessThanOrEqual(end);
  });

  it("a run that ended before it was submitted, by another server's clock, took no time", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 1)]));
    runToEnd(driver, () => 0);
    run.started = run.finished = run.submitted - 500;
    const { submitted, started, finished } = runView(run, 0);
    expect([started, finished]).toEqual([submitted, submitted]);
  });
});
