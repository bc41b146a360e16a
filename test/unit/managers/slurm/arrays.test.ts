import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elementsOf, isElement, isId, wholesOf } from "../../../../src/managers/slurm/driver/array-ids.ts";
import {
  mostInArray,
  parseConfig,
  parseLicences,
  parseParameters,
  parsePriorities,
} from "../../../../src/managers/slurm/driver/parse-config.ts";
import { parseSacct, parseSqueue } from "../../../../src/managers/slurm/driver/parse.ts";

/** A row as squeue prints it: fields end with 0x1f, the record with 0x1e. */
const row = (...fields: string[]): string => `${fields.join("\x1f")}\x1e\n`;

describe("arrays of Slurm", () => {
  it("squeue: an element has the id of its array and its number; another job its own", () => {
    const text = [
      row("12", "12", "N/A", "PENDING", "0", "BeginTime", "", "plain"),
      row("2", "1", "0", "RUNNING", "0", "None", "n1", "a b"),
      row("1", "1", "9", "CANCELLED", "15", "None", "n1", "a b"),
    ].join("");
    expect(parseSqueue(text)).toMatchObject([
      { id: "12", name: "plain", status: { state: "queued" } },
      { id: "1_0", name: "a b", status: { state: "active" }, array: { nativeId: "1", element: 0 } },
      { id: "1_9", status: { state: "ended", outcome: "cancelled" }, array: { nativeId: "1", element: 9 } },
    ]);
    expect(parseSqueue(text)[0]).not.toHaveProperty("array");
  });

  it("sacct: elements by their ids, also those that never began and share a row", () => {
    const line = (...fields: string[]): string => `${fields.join("\x1f")}\n`;
    const text = [
      line("1_[3-5,8]", "1", "CANCELLED by 0", "0:0", "1000", "None assigned", "None"),
      line("1_4", "7", "COMPLETED", "0:0", "1000", "n1", "None"),
      line("20+0", "20", "FAILED", "3:0", "1000", "n1", "None"),
    ].join("");
    const answers = parseSacct(text, 2_000_000);
    expect([...answers.keys()].toSorted()).toEqual(["1_3", "1_4", "1_5", "1_8", "20"]);
    expect(answers.get("1_3")).toMatchObject({ outcome: "cancelled" });
    expect(answers.get("1_4")).toMatchObject({ outcome: "done" });
    expect(answers.get("20")).toMatchObject({ outcome: "failed", exitCode: 3 });
  });

  it("what stands for several elements is all of them, and any text is taken", () => {
    expect(elementsOf("12_[0-6:2,9%3]")).toEqual(["12_0", "12_2", "12_4", "12_6", "12_9"]);
    expect(elementsOf("12_3")).toBeUndefined();
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(500), fc.nat(20)), { minLength: 1 }), (ranges) => {
        const text = ranges.map(([low, more]) => (more === 0 ? `${low}` : `${low}-${low + more}`)).join(",");
        const wanted = ranges.flatMap(([low, more]) => Array.from({ length: more + 1 }, (_, i) => `7_${low + i}`));
        expect(elementsOf(`7_[${text}]`)).toEqual(wanted);
      }),
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const id of elementsOf(text) ?? []) expect(isElement(id)).toBe(true);
      }),
    );
    expect(elementsOf("1_[0-999999999]")).toHaveLength(100_000);
  });

  it("ids", () => {
    for (const id of ["1", "1_0", "123_99"]) expect(isId(id)).toBe(true);
    for (const id of ["", "a", "1_", "_1", "1_a", "1_[2]", "1+0", "--me", "1_2_3", "1 2"]) expect(isId(id)).toBe(false);
    expect(wholesOf(["1_0", "2", "1_1", "1"])).toEqual(["1", "2"]);
  });
});

describe("what scontrol says of a Slurm", () => {
  it("row 001-67, row 001-68: parameters as they are written", () => {
    const config = parseConfig(
      [
        "Configuration data as of 2026-11-18T00:45:22",
        "MaxArraySize            = 1001",
        "PriorityParameters      = time_origin=2024-02-03 04:05+01:00,nice_factor=0.25,other",
        "PriorityFlags           = ",
        "PriorityWeightTRES      = (null)",
      ].join("\n"),
    );
    expect(mostInArray(config)).toBe(1001);
    expect(config.has("PriorityFlags") || config.has("PriorityWeightTRES")).toBe(false);
    expect(parseParameters(config.get("PriorityParameters")!)).toEqual({
      time_origin: "2024-02-03 04:05+01:00",
      nice_factor: "0.25",
      other: "",
    });
    expect(mostInArray(parseConfig(""))).toBeUndefined();
  });

  it("row 001-79: names of licences", () => {
    const text =
      "LicenseName=bar Total=10 Used=0 Free=10 Reserved=0 Remote=no\nLicenseName=foo@srv Total=4 Used=0 Remote=yes\n";
    expect(parseLicences(text)).toEqual(["bar", "foo@srv"]);
    expect(parseLicences("No licenses configured in Slurm.\n")).toEqual([]);
  });

  it("row 001-66: priorities as they would be with a nice value of 0; of held and floored jobs nothing", () => {
    const line = (...fields: string[]): string => `${fields.join("\x1f")}\x1f\n`;
    const text =
      line("PENDING", "970", "30") +
      line("PENDING", "0", "30") +
      line("PENDING", "1", "5000") +
      line("RUNNING", "1000", "0");
    expect(parsePriorities(text)).toEqual([
      { isWaiting: true, priority: 1000 },
      { isWaiting: false, priority: 1000 },
    ]);
  });

  it("any text is taken", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        parseConfig(text);
        parseParameters(text);
        parseLicences(text);
        parsePriorities(text);
      }),
    );
  });
});
