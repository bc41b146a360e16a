import { describe, expect, it } from "vitest";
import { shapeOf } from "../../../src/core/run.ts";
import { createRefusals, isLimit } from "../../../src/jobs/refusals.ts";
import { group } from "../core/model.ts";

const shape = shapeOf(group("a", 1), { cpus: 1 });
const other = shapeOf(group("b", 1), { cpus: 2 });

const POLICY =
  "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)";

describe("what follows when a manager takes no job", () => {
  it.each([
    [`sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: ${POLICY}`, true],
    [`sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: ${POLICY}`, false],
    [POLICY, true],
    ["sbatch: error: AssocMaxSubmitJobLimit", true],
    ["qsub: would exceed queue generic's per-user limit of jobs in 'Q' state", true],
    ["job rejected: maximum limit of user jobs is 10", true],
    ["Batch job submission failed: Invalid partition name specified", false],
    ["Batch job submission failed: Requested node configuration is not available", false],
    ["Requested time limit is invalid (missing or exceeds some limit)", false],
  ])("%s: passes = %s", (words, passes) => expect(isLimit(words)).toBe(passes));

  it("a limit is waited for with growing pauses, for ever", () => {
    const refusals = createRefusals();
    let now = 0;
    const pauses: number[] = [];
    for (let i = 0; i < 10; i += 1) {
      expect(refusals.refused(shape, "QOSMaxSubmitJobPerUserLimit", now)).toBe(false);
      expect(refusals.paused(other, now)).toBe(null);
      const until = refusals.next(now);
      pauses.push(until - now);
      expect(refusals.paused(shape, until - 1)).toBe("QOSMaxSubmitJobPerUserLimit");
      expect(refusals.paused(shape, until)).toBe(null);
      now = until;
    }
    expect(pauses.slice(0, 7)).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000]);
    expect(Math.max(...pauses)).toBe(60_000);
    refusals.taken(shape);
    expect(refusals.words(shape)).toBe(null);
    expect(refusals.next(now)).toBe(Infinity);
  });

  it("anything else is tried three times in a row, then it is over; one that was taken counts from the beginning", () => {
    const refusals = createRefusals();
    expect(refusals.refused(shape, "invalid partition", 0)).toBe(false);
    refusals.taken(shape);
    expect(refusals.refused(shape, "invalid partition", 0)).toBe(false);
    expect(refusals.refused(shape, "invalid partition", 0)).toBe(false);
    expect(refusals.refused(other, "invalid partition", 0)).toBe(false);
    expect(refusals.refused(shape, "invalid partition", 0)).toBe(true);
  });
});
