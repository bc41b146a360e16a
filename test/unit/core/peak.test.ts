import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeEvent, encodeEvent, packr } from "../../../src/core/codec.ts";
import { type PackedColumns, packResults, unpackResults } from "../../../src/core/columns.ts";
import { Ending, type Event, type ResultColumns } from "../../../src/core/events.ts";
import { PeakBy, largerPeak, peakOf, peakPages } from "../../../src/core/peak.ts";
import { createRunDecoder, encodeRun } from "../../../src/core/snapshot.ts";
import { checkResults } from "../../../src/protocol/check-results.ts";
import { createDriver, group, spec } from "./model.ts";
import { replayAll, same } from "./replays.ts";

const MB = 2 ** 20;
const PEAKS = 166;

const plainPages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };

const results = (rows: readonly number[], more: Partial<ResultColumns> = {}): ResultColumns => ({
  run: 1,
  rows: Uint32Array.from(rows),
  attempt: 1,
  ending: Ending.EXIT,
  code: 0,
  started: 50,
  finished: 60,
  outAt: -1,
  outBytes: 0,
  errBytes: 0,
  details: [],
  ...more,
});

const start = (retries = 0) => {
  const driver = createDriver();
  const run = driver.submit(spec([group("g", 3, { retries })]));
  const agent = driver.join();
  const others = driver.join();
  let seq = 0;
  const ended = (more: Partial<ResultColumns>, rows: readonly number[] = [0]): void =>
    driver.send({
      type: "tasks.ended",
      at: 100 + (seq += 1),
      agent,
      seq,
      parts: [results(rows, { run: run.id, ...more })],
    });
  const ranksEnded = (attempt: number, bytes: number, by: number): void =>
    driver.send({
      type: "ranks.ended",
      at: 90,
      run: run.id,
      row: 0,
      attempt,
      agent: others,
      ending: Ending.EXIT,
      code: 0,
      detail: "",
      outAt: -1,
      outBytes: 0,
      errBytes: 0,
      peak: { bytes, by },
    });
  return { driver, run, agent, others, ended, ranksEnded };
};

describe("peak memory of attempts", () => {
  it("is each attempt's own: the old one's moves to the history with it", () => {
    const { driver, run, agent, ended } = start(1);
    driver.assign(agent, run.id, 0);
    ended({ code: 1, peak: peakPages(300 * MB), peakBy: PeakBy.RUSAGE });
    expect(peakOf(run, 0)).toBeUndefined();
    expect(run.history.get(0)![0]!.peak).toEqual({ bytes: 300 * MB, by: PeakBy.RUSAGE });
    driver.assign(agent, run.id, 0);
    ended({ attempt: 2, peak: peakPages(20 * MB), peakBy: PeakBy.WATCH });
    expect(peakOf(run, 0)).toEqual({ bytes: 20 * MB, by: PeakBy.WATCH });
    same(
      replayAll(
        driver.events.map((event) => encodeEvent(event)),
        5,
      ),
      driver.state,
    );
  });

  it("is unknown where the result does not say, as those of earlier agents, and then costs nothing", () => {
    const { driver, run, agent, ended } = start();
    driver.assign(agent, run.id, 0);
    driver.assign(agent, run.id, 1);
    ended({});
    ended({ peak: new Uint32Array(1), peakBy: new Uint8Array(1) }, [1]);
    expect([peakOf(run, 0), peakOf(run, 1), run.peaks.size]).toEqual([undefined, undefined, 0]);
    const without = packResults(results([0, 1]));
    expect(packResults(results([0, 1], { peak: new Uint32Array(2), peakBy: new Uint8Array(2) }))).toEqual(without);
    expect(Object.keys(without)).not.toContain("peak");
    expect(checkResults({ t: "results", seq: 1, parts: [without] }).parts[0]!.peak).toBeUndefined();
    expect([...encodeRun(run, plainPages)].map(({ type }) => type)).not.toContain(PEAKS);
  });

  it("of ranks is the largest of any, whether other nodes report before the result, after it, or again", () => {
    const { driver, run, agent, others, ended, ranksEnded } = start(1);
    driver.assign(agent, run.id, 0, [others]);
    ranksEnded(1, 700 * MB, PeakBy.CGROUP);
    ended({ code: 1, peak: peakPages(500 * MB), peakBy: PeakBy.RUSAGE });
    expect(run.history.get(0)![0]!.peak).toEqual({ bytes: 700 * MB, by: PeakBy.CGROUP });
    ranksEnded(1, 900 * MB, PeakBy.WATCH);
    ranksEnded(1, 800 * MB, PeakBy.WATCH);
    expect(run.history.get(0)![0]!.peak).toEqual({ bytes: 900 * MB, by: PeakBy.WATCH });
    driver.assign(agent, run.id, 0, [others]);
    ended({ attempt: 2, peak: peakPages(500 * MB), peakBy: PeakBy.RUSAGE });
    ranksEnded(2, 400 * MB, PeakBy.WATCH);
    expect(peakOf(run, 0)).toEqual({ bytes: 500 * MB, by: PeakBy.RUSAGE });
    same(
      replayAll(
        driver.events.map((event) => encodeEvent(event)),
        5,
      ),
      driver.state,
    );
  });

  it("comes back from a snapshot; one that an earlier version wrote has none", () => {
    const { driver, run, agent, ended } = start();
    driver.assign(agent, run.id, 0);
    driver.assign(agent, run.id, 2);
    ended({ peak: Uint32Array.of(7, 9), peakBy: PeakBy.CGROUP }, [0, 2]);
    const restore = (skip: number) => {
      const decode = createRunDecoder(plainPages);
      return [...encodeRun(run, plainPages)]
        .filter(({ type }) => type !== skip)
        .map(decode)
        .at(-1)!;
    };
    expect(peakOf(restore(0), 2)).toEqual({ bytes: 9 * 4096, by: PeakBy.CGROUP });
    expect(peakOf(restore(0), 1)).toBeUndefined();
    expect(peakOf(restore(PEAKS), 2)).toBeUndefined();
  });

  it("survives columns, journal and check, whatever the numbers", () => {
    const value = fc.record({ pages: fc.nat(0xffff_ffff), by: fc.nat(3) });
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 20 }), (values) => {
        const given = results([...values.keys()], {
          peak: Uint32Array.from(values, ({ pages }) => pages),
          peakBy: Uint8Array.from(values, ({ by }) => by),
        });
        const event: Event = { type: "tasks.ended", at: 1, agent: 1, seq: 1, parts: [given] };
        const { type, payload } = encodeEvent(event);
        const back = decodeEvent(type, payload) as typeof event;
        const sent = packr.unpack(packr.pack(packResults(given))) as PackedColumns;
        for (const { peak = 0, peakBy = 0 } of [
          back.parts[0]!,
          checkResults({ t: "results", seq: 1, parts: [sent] }).parts[0]!,
        ])
          for (const [i, { pages, by }] of values.entries()) {
            const known = values.some((each) => each.by > 0);
            expect(typeof peakBy === "number" ? peakBy : peakBy[i]).toBe(by);
            if (known) expect(typeof peak === "number" ? peak : peak[i]).toBe(pages);
          }
      }),
    );
  });

  it("is refused where no agent could have sent it", () => {
    const good = packResults(results([0, 1], { peak: Uint32Array.of(1, 2), peakBy: PeakBy.WATCH }));
    expect(unpackResults(good).peakBy).toBe(PeakBy.WATCH);
    const { peak: _peak, ...noPeak } = good;
    for (const bad of [
      noPeak,
      { ...good, peakBy: undefined },
      { ...good, peakBy: 4 },
      { ...good, peakBy: -1 },
      { ...good, peakBy: 0.5 },
      { ...good, peakBy: Uint8Array.of(1, 9) },
      { ...good, peakBy: Uint8Array.of(1) },
      { ...good, peak: 2 ** 32 },
      { ...good, peak: -1 },
      { ...good, peak: NaN },
      { ...good, peak: "5" },
      { ...good, peak: new Uint8Array(7) },
    ])
      expect(() => checkResults({ t: "results", seq: 1, parts: [bad as unknown as PackedColumns] })).toThrow(
        RangeError,
      );
  });

  it("is counted in pages, rounded up, and never beyond what its column holds", () => {
    expect([peakPages(1), peakPages(4096), peakPages(4097), peakPages(2 ** 60)]).toEqual([1, 1, 2, 0xffff_ffff]);
    const [small, large] = [
      { bytes: 1, by: PeakBy.CGROUP },
      { bytes: 2, by: PeakBy.WATCH },
    ];
    expect([largerPeak(small, large), largerPeak(large, small)]).toEqual([large, large]);
    expect([largerPeak(undefined, small), largerPeak(small, undefined)]).toEqual([small, small]);
    expect(largerPeak(undefined, undefined)).toBeUndefined();
  });
});
