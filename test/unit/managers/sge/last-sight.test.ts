import { beforeEach, describe, expect, it } from "vitest";
import { createLastSight, type LastSight } from "../../../../src/managers/sge/driver/last-sight.ts";

const AWAITED = { state: "unknown", raw: "gone", reason: "not listed any more; its record is awaited" };
const LONG_MS = 30_001;

describe("sge: a job without a record in the accounting", () => {
  let clock: number;
  let lastSight: LastSight;
  beforeEach(() => {
    clock = 0;
    lastSight = createLastSight(() => clock);
  });
  const see = (state: string) => lastSight.seen({ id: "7", name: "a", owner: "me", state });

  it("is given up at once when it was never seen", () => {
    expect(lastSight.withoutRecord("7", false)).toEqual({ state: "ended", raw: "gone", outcome: "unknown" });
  });

  it("is waited for a while after it was seen to run, counted from when it was first missed", () => {
    see("r");
    expect(lastSight.withoutRecord("7", false)).toEqual(AWAITED);
    clock += LONG_MS;
    expect(lastSight.withoutRecord("7", false)).toMatchObject({ state: "ended", outcome: "unknown" });
  });

  it("is waited for anew when it was listed again meanwhile", () => {
    see("r");
    lastSight.withoutRecord("7", false);
    clock += LONG_MS;
    see("r");
    expect(lastSight.withoutRecord("7", false)).toEqual(AWAITED);
  });

  it("was cancelled where we deleted it, and at once where it had not started", () => {
    see("r");
    lastSight.deleted("7");
    lastSight.withoutRecord("7", true);
    clock += LONG_MS;
    expect(lastSight.withoutRecord("7", true)).toMatchObject({ state: "ended", raw: "gone", outcome: "cancelled" });
    lastSight.named("8", "b");
    lastSight.deleted("8");
    expect(lastSight.withoutRecord("8", true)).toMatchObject({
      outcome: "cancelled",
      reason: "deleted before it started",
    });
  });

  it("failed to start where it stood in error, and is told so again to whoever asks later", () => {
    expect(see("Eqw").stuck).toBeUndefined();
    const sight = lastSight.of("7")!;
    sight.reason = sight.error = "no such shell";
    expect(see("Eqw")).toMatchObject({ state: "held", stuck: true, reason: "no such shell" });
    const end = lastSight.withoutRecord("7", false);
    expect(end).toMatchObject({ state: "ended", outcome: "start-failed", reason: "no such shell" });
    expect(lastSight.endOf("7")).toEqual(end);
    expect(lastSight.of("7")).toBeUndefined();
  });
});
