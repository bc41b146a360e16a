import { describe, expect, it } from "vitest";
import { describe as describeEvent } from "../../../dashboard/format/events.ts";
import { count, percent, perSecond, short } from "../../../dashboard/format/numbers.ts";
import { byWord, etaOf } from "../../../dashboard/format/progress.ts";
import { createRateMeter } from "../../../dashboard/format/rate.ts";
import { roundTop, tickSeconds } from "../../../dashboard/format/scale.ts";
import { commandText, oneLine, plainOutput } from "../../../dashboard/format/text.ts";
import { duration } from "../../../dashboard/format/time.ts";

describe("text from outside", () => {
  it("loses what a screen cannot show, and nothing else", () => {
    expect(plainOutput("\u001b[31mred\u001b[0m\u001b]0;title\u0007 <b>&amp;\tx\n")).toBe("red <b>&amp;\tx\n");
    expect(plainOutput("10 %\r20 %\r30 %\nnext\r\n")).toBe("30 %\nnext\n");
    expect(plainOutput("a\u202eb\u0000c")).toBe("ab\ufffdc");
    expect(oneLine(`  many\n words ${"x".repeat(500)}`, 20)).toMatch(/^many words x+…$/);
  });

  it("a command is shown as one would type it", () => {
    expect(commandText(["/bin/sh", "-c", "echo a | wc"])).toBe("echo a | wc");
    expect(commandText(["ls", "my file", "it's"])).toBe(`ls 'my file' 'it'\\''s'`);
  });
});

describe("numbers and times", () => {
  it("are read at a glance", () => {
    expect([count(1_234_567), short(12_345), short(2_500_000), short(999)]).toEqual([
      "1,234,567",
      "12.3k",
      "2.5M",
      "999",
    ]);
    expect([percent(0, 10), percent(1, 1000), percent(999, 1000), percent(10, 10), percent(1, 0)]).toEqual([
      "0 %",
      "<1 %",
      "99 %",
      "100 %",
      "–",
    ]);
    expect([perSecond(0), perSecond(0.5), perSecond(3.14), perSecond(250)]).toEqual([
      "0/s",
      "30/min",
      "3.1/s",
      "250/s",
    ]);
    expect([0.004, 0.42, 9.96, 61, 3600, 5400, 90_000].map(duration)).toEqual([
      "4 ms",
      "0.4 s",
      "10 s",
      "1m 1s",
      "1h",
      "1h 30m",
      "1d 1h",
    ]);
  });

  it("axes end at round numbers and have few ticks", () => {
    expect(roundTop(0)).toEqual({ top: 1, ticks: [0, 1] });
    expect(roundTop(2968).ticks).toEqual([0, 1000, 2000, 3000]);
    for (const span of [0.01, 1, 59, 3600, 1e6, 1e8]) expect(span / tickSeconds(span, 6)).toBeLessThanOrEqual(6.0001);
  });

  it("a range that holds the end with 80 % is given with the ETA", () => {
    const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
    expect(etaOf({ eta: 600, etaRange: { p10: at(500), p50: at(600), p90: at(900) } })).toEqual({
      likely: "10m",
      range: "8m 20s – 15m",
    });
    expect(etaOf({ eta: null, etaRange: null })).toBeUndefined();
  });

  it("a rate is of the last seconds, and begins again with another server", () => {
    const meter = createRateMeter();
    expect(meter(0, 100)).toBeUndefined();
    expect(meter(1000, 150)).toBe(50);
    for (let second = 2; second <= 30; second++) meter(second * 1000, 150);
    expect(meter(31_000, 150)).toBe(0);
    expect(meter(32_000, 3)).toBeUndefined();
  });

  it("states are told in people's words, in the order of a bar", () => {
    expect(byWord({ NEW: 5, AGENT_EXECUTING: 2, DONE: 1, TMGR_SCHEDULING: 0 })).toEqual([
      { word: "done", tasks: 1 },
      { word: "running", tasks: 2 },
      { word: "waiting", tasks: 5 },
    ]);
  });
});

describe("events as sentences", () => {
  const time = "2026-11-18T08:00:00.000Z";
  it("say what happened to what", () => {
    expect(
      describeEvent({
        seq: 1,
        time,
        event: "attempt.failed",
        run: 3,
        task: "3.17",
        detail: { exitCode: 2, signal: null, reason: null },
      }),
    ).toEqual({ about: "Task 3.17", what: "failed: exit code 2", state: "failed" });
    expect(describeEvent({ seq: 2, time, event: "pilot.state", detail: { pilot: 4, state: "PMGR_ACTIVE" } })).toEqual({
      about: "Pilot 4",
      what: "is running",
      state: "running",
    });
  });

  it("of a kind that is not known are shown with all they carry", () => {
    expect(describeEvent({ seq: 3, time, event: "new.kind", detail: { a: 1, b: null, c: "<x>" } }).what).toBe(
      "a 1, c <x>",
    );
  });
});
