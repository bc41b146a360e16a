import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createResultPace } from "../../../src/agent/result-pace.ts";

describe("when results go to the server", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const start = () => {
    const begun = Date.now();
    const sent: number[] = [];
    const pace = createResultPace(() => void sent.push(Date.now() - begun));
    return { pace, sent };
  };

  it("with the next turn of the loop where a slot would be idle, once however many there are", () => {
    const { pace, sent } = start();
    pace.due(false, true);
    pace.due(true);
    pace.due(true, true);
    vi.advanceTimersByTime(1000);
    expect(sent).toEqual([0]);
  });

  it("gathered while every slot has work, and longer while nobody waits for any of them", () => {
    const { pace, sent } = start();
    pace.due(false);
    vi.advanceTimersByTime(5);
    pace.due(false, true);
    vi.advanceTimersByTime(1000);
    pace.due(false, true);
    vi.advanceTimersByTime(60);
    pace.due(false, true);
    vi.advanceTimersByTime(1000);
    expect(sent).toEqual([20, 1105]);
  });

  it("no later for those before it when somebody waits for one", () => {
    const { pace, sent } = start();
    pace.due(false, true);
    vi.advanceTimersByTime(50);
    pace.due(false);
    vi.advanceTimersByTime(10);
    pace.due(false);
    vi.advanceTimersByTime(1000);
    // and one that comes late does not delay what was due
    pace.due(false, true);
    vi.advanceTimersByTime(90);
    pace.due(false);
    vi.advanceTimersByTime(1000);
    expect(sent).toEqual([70, 1160]);
  });
});
