import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  canonicalResource,
  formatDuration,
  formatResource,
  formatSize,
  MAX_BYTES,
  MAX_SECONDS,
  parseAmount,
  parseDuration,
  parseResource,
  parseSize,
  resourceNameProblem,
} from "../../../src/core/quantities.ts";

describe("parseDuration", () => {
  it.each([
    [90, 90],
    ["90", 90],
    ["0", 0],
    ["90s", 90],
    ["0.5s", 0.5],
    [".5s", 0.5],
    ["10m", 600],
    ["1h30m", 5400],
    ["1h 30m", 5400],
    ["2d", 172_800],
    ["1.5h", 5400],
    ["04:00:00", 14_400],
    ["100:00:00", 360_000],
    ["1-12:00:00", 129_600],
    ["2-06", 194_400],
    [" 10M ", 600],
  ])("reads %j as %d seconds", (text, seconds) => expect(parseDuration(text)).toBe(seconds));

  it.each([
    ["", /not a valid duration/],
    ["soon", /not a valid duration/],
    ["10x", /not a valid duration/],
    ["1m1h", /not a valid duration/],
    ["-5", /negative/],
    [-1, /negative/],
    [Number.NaN, /finite/],
    [Number.POSITIVE_INFINITY, /finite/],
    ["04:00", /ambiguous/],
    ["00:75:00", /minutes and seconds/],
    ["1-25:00:00", /hours after days/],
    ["1e9", /not a valid duration/],
    ["40000d", /100 years/],
    [MAX_SECONDS + 1, /100 years/],
    ["9".repeat(200), /not a valid duration/],
  ])("refuses %j", (text, message) => expect(() => parseDuration(text)).toThrow(message));
});

describe("parseSize", () => {
  it.each([
    [500, 500 * 2 ** 20],
    ["500", 500 * 2 ** 20],
    ["500M", 500 * 2 ** 20],
    ["500MB", 500 * 2 ** 20],
    ["500MiB", 500 * 2 ** 20],
    ["2g", 2 ** 31],
    ["1.5GiB", 1.5 * 2 ** 30],
    ["1 K", 1024],
    ["100B", 100],
    ["1T", 2 ** 40],
    ["0", 0],
    ["0.0001K", 1],
  ])("reads %j as %d bytes", (text, bytes) => expect(parseSize(text)).toBe(bytes));

  it.each([
    ["lots", /not a valid size/],
    ["5Q", /not a valid size/],
    ["M", /not a valid size/],
    ["-2G", /negative/],
    [-2, /negative/],
    ["2P", /1024 TiB/],
    ["1,5G", /not a valid size/],
    ["", /not a valid size/],
  ])("refuses %j", (text, message) => expect(() => parseSize(text)).toThrow(message));
});

describe("parseAmount and parseResource", () => {
  it("row 001-34: reads plain numbers", () => {
    expect(parseAmount("2")).toBe(2);
    expect(parseAmount(0.25)).toBe(0.25);
    expect(() => parseAmount("two")).toThrow(/must be a number/);
    expect(() => parseAmount("-2")).toThrow(/negative/);
    expect(() => parseAmount(0.00001)).toThrow(/smallest/);
  });

  it("gives units, and whole GPUs above one", () => {
    expect(parseResource("cpus", "1.5")).toBe(15_000);
    expect(parseResource("gpus", 0.3333)).toBe(3333);
    expect(parseResource("gpus", 2)).toBe(20_000);
    expect(parseResource("mem", "1G")).toBe(2 ** 30);
    expect(parseResource("licence", 3)).toBe(30_000);
    expect(() => parseResource("gpus", 1.5)).toThrow(/whole/);
    expect(() => parseResource("cpus", 1_000_001)).toThrow(/more than 1000000/);
    expect(() => parseResource("mem", "2000T")).toThrow(/1024 TiB/);
  });

  it("knows names people write in the singular, and refuses odd ones", () => {
    expect(["cpu", "gpu", "memory", "licence"].map(canonicalResource)).toEqual(["cpus", "gpus", "mem", "licence"]);
    expect(resourceNameProblem("licence-2")).toBeUndefined();
    for (const name of ["", "2x", "a b", "__proto__", "constructor", "toString", "x".repeat(65)]) {
      expect(resourceNameProblem(name)).toBeDefined();
    }
  });
});

describe("formats", () => {
  it("writes what people write", () => {
    expect([0, 0.5, 90, 5400, 90_061, 59.9999].map(formatDuration)).toEqual([
      "0s",
      "0.5s",
      "1m30s",
      "1h30m",
      "1d1h1m1s",
      "1m",
    ]);
    expect([0, 1, 1024, 500 * 2 ** 20, 1.5 * 2 ** 30, 2 ** 50, 2 ** 30 - 1].map(formatSize)).toEqual([
      "0B",
      "1B",
      "1K",
      "500M",
      "1.5G",
      "1P",
      "1G",
    ]);
    expect(formatResource("cpus", 15_000)).toBe("1.5");
    expect(formatResource("mem", 2 ** 30)).toBe("1G");
  });

  it("durations come back exactly to the millisecond", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MAX_SECONDS * 1000 }), (ms) => {
        expect(parseDuration(formatDuration(ms / 1000))).toBeCloseTo(ms / 1000, 4);
      }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MAX_SECONDS }), (s) => {
        expect(parseDuration(formatDuration(s))).toBe(s);
      }),
    );
  });

  it("sizes come back within half a percent, whole units exactly", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MAX_BYTES }), (bytes) => {
        expect(Math.abs(parseSize(formatSize(bytes)) - bytes)).toBeLessThanOrEqual(Math.max(1, bytes * 0.005));
      }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1023 }), fc.integer({ min: 0, max: 4 }), (n, unit) => {
        expect(parseSize(formatSize(n * 1024 ** unit))).toBe(n * 1024 ** unit);
      }),
    );
  });
});

it("any text gives a finite number or a RangeError", () => {
  const parsers = [parseDuration, parseSize, (text: string) => parseAmount(text)];
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[-+]?[0-9.]{0,20}[ dhmsKGTPiB:-]{0,4}[0-9:]{0,9}$/));
  fc.assert(
    fc.property(text, (text) => {
      for (const parse of parsers) {
        try {
          const value = parse(text);
          expect(Number.isFinite(value) && value >= 0).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }
    }),
    { numRuns: 2000 },
  );
});
