import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { OverviewView } from "../../../src/api/overview.ts";
import { PLAIN, styleFor } from "../../../src/cli/render/style.ts";
import { columnsOf } from "../../../src/cli/render/text.ts";
import { topScreen } from "../../../src/cli/render/top.ts";

const run = (id: number, name: string, finished: string | null): OverviewView["runs"][number] => ({
  id,
  name,
  state: finished === null ? "RUNNING" : "FAILED",
  total: 100,
  counts: finished === null ? { DONE: 40, AGENT_EXECUTING: 8, TMGR_SCHEDULING_PENDING: 52 } : { DONE: 98, FAILED: 2 },
  unneeded: 0,
  submitted: "2026-11-18T04:00:00.000Z",
  started: "2026-11-18T04:00:01.000Z",
  finished,
  eta: finished === null ? 90 : null,
  etaRange: null,
  etaReason: null,
  reason: null,
  retries: 0,
  losses: 0,
  outputLost: null,
  numbering: { start: 0, step: 1 },
});

const overview = (names: readonly string[], clusters: readonly string[]): OverviewView => ({
  server: {
    host: "login1",
    started: "2026-11-18T01:00:00.000Z",
    state: "running",
    detail: null,
  } as OverviewView["server"],
  tasks: { waiting: 5000, ready: 1234, starting: 3, running: 12, staging: 0 },
  ended: { done: 3400, failed: 3, cancelled: 0 },
  resources: clusters.flatMap((cluster) => [
    { cluster, resource: "cpus", total: 64, used: 48 },
    { cluster, resource: "gpus", total: 4, used: 1 },
  ]),
  fleets: clusters.map((cluster) => ({
    cluster,
    queue: "cpu",
    strategy: "demand",
    pilots: 3,
    active: 2,
    draining: 0,
    min: 0,
    max: 4,
    waiting: 1234,
    problem: null,
    failure: null,
    pending: 1,
    ends: "2026-11-18T05:00:00.000Z",
  })),
  runs: names.map((name, i) => run(i + 1, name, i % 3 === 2 ? "2026-11-18T04:10:00.000Z" : null)),
});

const NOW = Date.parse("2026-11-18T04:30:00.000Z");
const at = { width: 79, height: 24, style: PLAIN, unicode: true, now: NOW, rate: 12.3 };

describe("slipway top", () => {
  it("80 × 24 holds it: tasks, throughput, use, fleets with pending pilots and time left, runs with ETA", () => {
    const lines = topScreen(overview(["dock", "fit", "old"], ["hpc"]), at);
    const text = lines.join("\n");
    expect(lines[0]).toMatch(/^slipway {2}login1 {2}up 3h 30m +running$/);
    expect(lines[1]).toBe(
      "12 running  1,237 ready  5,000 waiting  12 tasks/s  3 failed  3,400 done  0 cancelled".slice(
        0,
        lines[1]!.length,
      ),
    );
    expect(text).toMatch(/hpc cpus {2}▕█+.*48 of 64, 75 %/);
    expect(text).toMatch(/hpc gpus {2}▕█+.*1 of 4, 25 %/);
    expect(text).toMatch(/FLEET +ACTIVE +PENDING +MAX +WAITING +LEFT\nhpc\/cpu +2 +1 +4 +1,234 +30m 00s/);
    expect(text).toMatch(/1 dock ▕.*▏ {2}40\/100 {2}8 running {2}ETA 1m 30s/);
    expect(text).toMatch(/3 +old +failed +100 +2 +9m 59s/);
  });

  it("is never wider nor higher than the terminal, whatever names hold, with colours and without", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 10, max: 200 }),
        fc.integer({ min: 3, max: 60 }),
        fc.array(fc.string({ unit: "binary", maxLength: 60 }), { maxLength: 30 }),
        fc.array(fc.string({ maxLength: 40 }), { maxLength: 8 }),
        fc.boolean(),
        fc.boolean(),
        (width, height, names, clusters, color, unicode) => {
          const screen = { ...at, width, height, style: styleFor(color), unicode };
          const lines = topScreen(overview(names, clusters), screen);
          expect(lines.length).toBeLessThanOrEqual(height);
          for (const line of lines) {
            expect(columnsOf(line)).toBeLessThanOrEqual(width);
            expect(line).not.toMatch(/[\n\r\t]/);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it("what is wrong stands at the top", () => {
    const [head] = topScreen(overview([], []), { ...at, trouble: "the server does not answer; trying again" });
    expect(head).toMatch(/the server does not answer; trying again$/);
    expect(topScreen(overview([], []), at).at(-1)).toBe("no runs");
  });
});
