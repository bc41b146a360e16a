import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { peakAtEnd } from "../../../src/agent/peak.ts";
import { memoryLimit, type RankOfTask } from "../../../src/agent/task.ts";
import { PEAK_SOURCES, PeakBy } from "../../../src/core/peak.ts";

const exit = (maxRssBytes: number, cgroupPeakBytes = 0) => ({ error: null, maxRssBytes, cgroupPeakBytes });

const ALONE = { rank: undefined };
const launcher = (below: number): { rank: RankOfTask } => ({
  rank: { number: 0, env: [], launcher: ["mpiexec"], below, output: { current: undefined } },
});

describe("the peak memory of an attempt that has ended", () => {
  it("is what its cgroup counted, else the larger of the kernel's accounts and the watch, else unknown", () => {
    expect(peakAtEnd(ALONE, exit(500, 300), 900)).toEqual({ bytes: 300, by: PeakBy.CGROUP });
    expect(peakAtEnd(ALONE, exit(500), 400)).toEqual({ bytes: 500, by: PeakBy.RUSAGE });
    expect(peakAtEnd(ALONE, exit(500), 900)).toEqual({ bytes: 900, by: PeakBy.WATCH });
    expect(peakAtEnd(ALONE, exit(0), 900)).toEqual({ bytes: 900, by: PeakBy.WATCH });
    expect(peakAtEnd(ALONE, exit(0), 0)).toBeUndefined();
  });

  it("lost with its spawner is what the watch saw; one that never started has none", () => {
    expect(peakAtEnd(ALONE, undefined, 900)).toEqual({ bytes: 900, by: PeakBy.WATCH });
    expect(peakAtEnd(ALONE, undefined, 0)).toBeUndefined();
    const error = { stage: "exec", errno: 2, code: "ENOENT" } as const;
    expect(peakAtEnd(ALONE, { ...exit(2 ** 20), error }, 0)).toBeUndefined();
  });

  it("is per rank: sums below a launcher are shared out; where srun has others start them, nobody can tell", () => {
    expect(peakAtEnd(launcher(4), exit(200), 1000)).toEqual({ bytes: 250, by: PeakBy.WATCH });
    expect(peakAtEnd(launcher(4), exit(300), 1000)).toEqual({ bytes: 300, by: PeakBy.RUSAGE });
    expect(peakAtEnd(launcher(4), exit(300, 1600), 1000)).toEqual({ bytes: 400, by: PeakBy.CGROUP });
    expect(peakAtEnd(launcher(1), exit(300), 1000)).toEqual({ bytes: 1000, by: PeakBy.WATCH });
    expect(peakAtEnd(launcher(0), exit(300, 1600), 1000)).toBeUndefined();
  });

  it("always has a source that people can read, and is no smaller than any source but a counting cgroup's", () => {
    const size = fc.oneof(fc.constant(0), fc.nat(2 ** 31 - 1));
    fc.assert(
      fc.property(size, size, size, (rss, cgroup, watched) => {
        const peak = peakAtEnd(ALONE, exit(rss, cgroup), watched);
        expect(peak?.bytes ?? 0).toBe(cgroup > 0 ? cgroup : Math.max(rss, watched));
        expect(PEAK_SOURCES[peak?.by ?? 0] === null).toBe(peak === undefined);
      }),
    );
  });
});

describe("the memory that a task may have", () => {
  const resources = { mem: 100 };

  it("is its request, for all its processes together; a launcher's that of all ranks that it starts here", () => {
    expect(memoryLimit({ resources, ...ALONE })).toBe(100);
    expect(memoryLimit({ resources, ...launcher(4) })).toBe(400);
    expect(memoryLimit({ resources, ...launcher(0) })).toBe(100);
    expect(memoryLimit({ resources: {}, ...launcher(4) })).toBeUndefined();
  });
});
