import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createPilotEnd, elapsedMs } from "../../../src/agent/pilot-end.ts";

const life = { drainMs: 100_000, signalMs: 150_000, endMs: 180_000, signal: "SIGUSR1" };

describe("the end of an agent's pilot", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_000_000_000 }));
  afterEach(() => void vi.useRealTimers());

  const watch = (lifetime: Parameters<typeof createPilotEnd>[0], startedAt?: string) => {
    const said: string[] = [];
    const end = createPilotEnd(lifetime, startedAt);
    end.arm({
      drain: () => said.push("drain"),
      signal: (name) => said.push(name),
      end: () => said.push("end"),
    });
    return { said, end };
  };

  it("drains, signals, ends, each at its time from the agent's own start", () => {
    const { said, end } = watch(life);
    expect(end.endsInMs()).toBe(150_000);
    expect(end.environment).toEqual([
      "SLIPWAY_PILOT_END=1000180",
      "SLIPWAY_SIGNAL_SECONDS=30",
      "SLIPWAY_PILOT_DRAIN=1000100",
    ]);
    vi.advanceTimersByTime(99_999);
    expect(said).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(said).toEqual(["drain"]);
    vi.advanceTimersByTime(50_000);
    expect(said).toEqual(["drain", "SIGUSR1"]);
    vi.advanceTimersByTime(30_000);
    expect(said).toEqual(["drain", "SIGUSR1", "end"]);
  });

  it("counts from the job's start where its script tells it: a slow prologue is part of the walltime", () => {
    const { said, end } = watch(life, "999940");
    expect(end.endsInMs()).toBe(90_000);
    expect(end.environment[0]).toBe("SLIPWAY_PILOT_END=1000120");
    vi.advanceTimersByTime(40_000);
    expect(said).toEqual(["drain"]);
  });

  it("what is overdue happens at once, and only when it is armed", () => {
    const { said } = watch(life, "999000");
    vi.advanceTimersByTime(0);
    expect(said).toEqual(["drain", "SIGUSR1", "end"]);
  });

  it("waits longer than a timer can", () => {
    const month = 40 * 86_400_000;
    const { said } = watch({ ...life, drainMs: month, signalMs: month + 1000, endMs: month + 2000 });
    vi.advanceTimersByTime(month - 1);
    expect(said).toEqual([]);
    vi.advanceTimersByTime(2001);
    expect(said).toEqual(["drain", "SIGUSR1", "end"]);
  });

  it("says nothing when stopped; where there is no end tasks learn only when nothing new is taken", () => {
    const { said, end } = watch(life);
    end.stop();
    vi.advanceTimersByTime(999_999);
    expect(said).toEqual([]);
    const gentle = watch({ drainMs: 10, signalMs: null, endMs: null, signal: "SIGTERM" });
    vi.advanceTimersByTime(999_999);
    expect([gentle.said, gentle.end.endsInMs()]).toEqual([["drain"], undefined]);
    expect(gentle.end.environment).toEqual([expect.stringMatching(/^SLIPWAY_PILOT_DRAIN=\d+$/)]);
    expect(watch(undefined).end.endsInMs()).toBeUndefined();
  });

  it("a start that makes no sense counts for nothing", () => {
    for (const text of [undefined, "", "soon", "-5", "1e9", "99999999999999"]) expect(elapsedMs(text, 5000)).toBe(0);
    expect(elapsedMs("4", 5000)).toBe(1000);
    expect(elapsedMs("6", 5000)).toBe(0);
  });
});
