import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeEvent } from "../../../src/core/codec.ts";
import { packResults, unpackResults } from "../../../src/core/columns.ts";
import { Ending, type ResultColumns } from "../../../src/core/events.ts";
import { encodeRun } from "../../../src/core/snapshot.ts";
import { addUsed, usageAt, usageOf, usedBy } from "../../../src/core/usage.ts";
import { checkResults } from "../../../src/protocol/check-results.ts";
import { createDriver, group, spec } from "./model.ts";
import { replayAll, same } from "./replays.ts";

const USAGE = 170;
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
  const run = driver.submit(spec([group("g", 3, { retries, ranks: { count: 2, by: "agents" } })]));
  const [head, other] = [driver.join(), driver.join()];
  let seq = 0;
  const ended = (more: Partial<ResultColumns>, rows: readonly number[] = [0]): void =>
    driver.send({
      type: "tasks.ended",
      at: 100 + (seq += 1),
      agent: head,
      seq,
      parts: [results(rows, { run: run.id, ...more })],
    });
  const ranksEnded = (cpu: number): void =>
    driver.send({
      type: "ranks.ended",
      at: 90,
      run: run.id,
      row: 0,
      attempt: 1,
      agent: other,
      ending: Ending.EXIT,
      code: 0,
      detail: "",
      outAt: -1,
      outBytes: 0,
      errBytes: 0,
      cpu,
      read: 5,
    });
  const assign = (agents: readonly number[] = [head]): void =>
    driver.send({
      type: "tasks.assigned",
      at: 40,
      agent: head,
      parts: [{ run: run.id, ranges: [0, 1] }],
      ...(agents.length > 1 ? { gang: { agents: [...agents], ranks: agents.map(() => 1) } } : {}),
    });
  const replays = (): void =>
    same(
      replayAll(
        driver.events.map((event) => encodeEvent(event)),
        5,
      ),
      driver.state,
    );
  return { driver, run, head, other, ended, ranksEnded, assign, replays };
};

describe("what attempts used", () => {
  it("is each attempt's own: the old one's moves to the history with it", () => {
    const { run, ended, assign, replays } = start(1);
    assign();
    ended({ code: 1, cpu: 7, system: 3, written: 2 });
    expect(usageAt(run, 0)).toBeUndefined();
    expect(run.history.get(0)![0]!.usage).toEqual({ cpu: 7, system: 3, read: 0, written: 2 });
    assign();
    ended({ attempt: 2, cpu: 1 });
    expect(usageAt(run, 0)).toEqual({ cpu: 1, system: 0, read: 0, written: 0 });
    replays();
  });

  it("of ranks on other agents is added, once", () => {
    const { run, head, other, ended, ranksEnded, assign, replays } = start();
    assign([head, other]);
    ranksEnded(10);
    ranksEnded(10);
    ended({ cpu: 4, read: 1 });
    expect(usageAt(run, 0)).toEqual({ cpu: 14, system: 0, read: 6, written: 0 });
    ranksEnded(10);
    expect(usageAt(run, 0)!.cpu, "after its end").toBe(14);
    replays();
  });

  it("costs nothing where nobody measured, and one column where only CPU time was used", () => {
    const { run, ended, assign } = start();
    assign();
    ended({ cpu: new Uint32Array(1), read: new Uint32Array(1) });
    expect(run.usage.size).toBe(0);
    expect([...encodeRun(run, plainPages)].map(({ type }) => type)).not.toContain(USAGE);
    expect(Object.keys(packResults(results([0, 1], { cpu: new Uint32Array(2) })))).not.toContain("cpu");
    const other = start();
    other.assign();
    other.ended({ cpu: 1 });
    expect(Object.keys(other.run.usage.get(0)!)).toEqual(["cpu"]);
  });

  it("survives the wire, whatever the numbers, and is refused out of bounds", () => {
    const number = fc.integer({ min: 0, max: 0xffff_ffff });
    fc.assert(
      fc.property(fc.array(fc.tuple(number, number, number, number), { minLength: 1, maxLength: 20 }), (values) => {
        const column = (at: 0 | 1 | 2 | 3) => Uint32Array.from(values, (value) => value[at]);
        const columns = { cpu: column(0), system: column(1), read: column(2), written: column(3) };
        const back = unpackResults(packResults(results([...values.keys()], columns)));
        for (const [at, name] of (["cpu", "system", "read", "written"] as const).entries())
          for (const [i, value] of values.entries()) {
            const got = back[name] ?? 0;
            expect(typeof got === "number" ? got : got[i]).toBe(value[at]);
          }
      }),
    );
    const good = packResults(results([0, 1], { cpu: Uint32Array.of(1, 2), read: 3 }));
    for (const bad of [{ cpu: -1 }, { read: 2 ** 32 }, { written: "5" }, { system: new Uint8Array(7) }])
      expect(() => checkResults({ t: "results", seq: 1, parts: [{ ...good, ...bad } as never] })).toThrow(RangeError);
  });

  it("rounds up, keeps the system's part within the whole, and is undefined where nothing was measured", () => {
    expect(usageOf({ userMs: 0, systemMs: 0, readBytes: 0, writtenBytes: 0 })).toBeUndefined();
    fc.assert(
      fc.property(
        fc.double({ min: 0.001, max: 1e9, noNaN: true }),
        fc.double({ min: 0, max: 1e9, noNaN: true }),
        (a, b) => {
          const { userMs, systemMs } = usedBy(usageOf({ userMs: a, systemMs: b, readBytes: 1, writtenBytes: 0 })!);
          expect(userMs).toBeGreaterThanOrEqual(0);
          expect(Math.abs(userMs + systemMs - a - b)).toBeLessThanOrEqual(10);
          expect(Math.abs(systemMs - b)).toBeLessThanOrEqual(10);
        },
      ),
    );
    const one = { userMs: 1, systemMs: 2, readBytes: 4096, writtenBytes: 4097 };
    expect(usedBy(usageOf(one)!)).toMatchObject({ readBytes: 4096, writtenBytes: 8192 });
    expect(addUsed(undefined, one)).toBe(one);
    expect(addUsed(one, one)).toEqual({ userMs: 2, systemMs: 4, readBytes: 8192, writtenBytes: 8194 });
  });
});
