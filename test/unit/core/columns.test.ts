import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_RESULTS, packResults, unpackResults, valueAt } from "../../../src/core/columns.ts";
import { packr } from "../../../src/core/codec.ts";
import type { ResultColumns } from "../../../src/core/events.ts";

const columns = fc.integer({ min: 1, max: 40 }).chain((n) => {
  const list = (each: fc.Arbitrary<number>): fc.Arbitrary<number[]> =>
    fc.oneof(
      fc.array(each, { minLength: n, maxLength: n }),
      each.map((value) => Array.from({ length: n }, () => value)),
    );
  const double = fc.double({ noNaN: true }).map((value) => (value === 0 ? 0 : value));
  return fc.record({
    run: fc.nat(),
    rows: fc.oneof(
      list(fc.nat(0xffff_ffff)).map((rows) => Uint32Array.from(rows)),
      fc.nat(1000).map((from) => Uint32Array.from({ length: n }, (_, i) => from + i)),
    ),
    attempt: list(fc.nat(65_535)).map((values) => Uint16Array.from(values)),
    ending: list(fc.nat(6)).map((values) => Uint8Array.from(values)),
    code: list(fc.integer({ min: -1000, max: 255 })).map((values) => Int16Array.from(values)),
    started: list(double).map((values) => Float64Array.from(values)),
    finished: list(double).map((values) => Float64Array.from(values)),
    outAt: list(double).map((values) => Float64Array.from(values)),
    outBytes: list(double).map((values) => Float64Array.from(values)),
    errBytes: list(double).map((values) => Float64Array.from(values)),
    details: fc.array(fc.tuple(fc.nat(n - 1), fc.string()), { maxLength: 3 }),
    lost: fc.array(fc.tuple(fc.nat(n - 1), fc.nat(), fc.nat(), fc.integer({ min: 1, max: 4 })), {
      minLength: 1,
      maxLength: Math.min(3, n),
    }),
  });
});

/** Each value of each column. */
const spelledOut = ({ run, rows, details, lost, ...columns }: ResultColumns): object => ({
  run,
  rows,
  details,
  lost,
  ...Object.fromEntries(
    Object.entries(columns).map(([name, column]) => [name, Array.from(rows, (_, i) => valueAt(column, i))]),
  ),
});

describe("columns of results", () => {
  it("come back as they were, also through msgpack at any alignment", () => {
    fc.assert(
      fc.property(columns, fc.nat(7), (given, shift) => {
        const bytes = packr.pack(packResults(given));
        const moved = Buffer.concat([Buffer.alloc(shift), bytes]).subarray(shift);
        const back = unpackResults(packr.unpack(moved) as never);
        expect(spelledOut(back)).toEqual(spelledOut(given));
        // packed again, without looking at each value, it is the same
        expect(packResults(back)).toEqual(packResults(given));
      }),
    );
  });

  it("of an array's tasks take few bytes each", () => {
    const n = 1000;
    const same = (value: number): Float64Array => new Float64Array(n).fill(value);
    const bytes = packr.pack(
      packResults({
        run: 1,
        rows: Uint32Array.from({ length: n }, (_, i) => i),
        attempt: new Uint16Array(n).fill(1),
        ending: new Uint8Array(n),
        code: new Int16Array(n),
        started: Float64Array.from({ length: n }, (_, i) => 1e12 + i / 7),
        finished: Float64Array.from({ length: n }, (_, i) => 1e12 + i / 3),
        outAt: same(-1),
        outBytes: same(0),
        errBytes: same(0),
        details: [],
      }),
    );
    expect(bytes.length / n).toBeLessThan(20);
  });

  it("that lie about their length are refused, never read beyond", () => {
    const good = {
      run: 1,
      n: 3,
      from: 0,
      attempt: 1,
      ending: 0,
      code: 0,
      started: 0,
      finished: 0,
      outAt: -1,
      outBytes: 0,
      errBytes: 0,
    };
    expect(unpackResults({ ...good, attempt: 65_537, code: 1.5 })).toMatchObject({ attempt: 1, code: 1 });
    expect(unpackResults(good).rows).toEqual(Uint32Array.from([0, 1, 2]));
    for (const lie of [
      { n: 0 },
      { n: -1 },
      { n: 1.5 },
      { n: MAX_RESULTS + 1 },
      { n: Number.NaN },
      { from: -1 },
      { from: 0xffff_ffff },
      { attempt: new Uint8Array(5) },
      { code: "x" },
      { run: "1" },
      { from: undefined },
    ])
      expect(() => unpackResults({ ...good, ...lie } as never)).toThrow(RangeError);
  });
});
