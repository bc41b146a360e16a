import { describe, expect, it } from "vitest";
import { touch } from "../../../src/core/table.ts";
import { runView, taskView } from "../../../src/views/views.ts";
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

describe("what a task runs", () => {
  it("is shown as its agent runs it; what cannot be placed is shown as it was written", () => {
    const driver = createDriver();
    const run = driver.submit(
      spec(
        [
          group("a", 2, {
            items: { kind: "range", from: 5, step: 5, count: 2 },
            command: "echo {item}",
            stdout: "{item}.out",
          }),
          group("b", 1, { command: ["echo", "{item.x}", "{name}"], cwd: "sub", stderr: "{cwd}/{item}" }),
        ],
        { cwd: "/work" },
      ),
    );
    const { cwd } = run.spec;
    expect(taskView(driver.state, run, 1, null)).toMatchObject({
      item: "10",
      command: ["/bin/sh", "-c", "echo 10"],
      cwd,
      stdout: `${cwd}/10.out`,
      stderr: null,
    });
    expect(taskView(driver.state, run, 2, null)).toMatchObject({
      item: null,
      command: ["echo", "{item.x}", "b"],
      cwd: `${cwd}/sub`,
      stderr: `${cwd}/{cwd}/{item}`,
    });
  });
});

describe("row 001-13: when a run ends, for other programs", () => {
  const run = createDriver().submit(spec([group("a", 3)]));

  it("seconds to go, and the range as dates", () => {
    const dates = { p10: 11_000, p50: 12_340, p90: 20_000 };
    expect(runView(run, 10_000, { dates })).toMatchObject({
      eta: 2.3,
      etaRange: { p10: iso(11_000), p50: iso(12_340), p90: iso(20_000) },
      etaReason: null,
    });
    expect(runView(run, 15_000, { dates }), "a date that has passed is now").toMatchObject({
      eta: 0,
      etaRange: { p10: iso(15_000), p50: iso(15_000), p90: iso(20_000) },
    });
  });

  it("or why nobody can tell", () => {
    const none = { eta: null, etaRange: null };
    expect(runView(run, 10_000, { reason: "it waits" })).toMatchObject({ ...none, etaReason: "it waits" });
    expect(runView(run, 10_000, undefined)).toMatchObject({ ...none, etaReason: null });
    const { etaRange } = runView(run, 10_000, { dates: { p10: 1, p50: Infinity, p90: Infinity } });
    expect(Date.parse(etaRange!.p90)).toBeGreaterThan(0);
  });
});
