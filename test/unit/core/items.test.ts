import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  arrayValues,
  checkItem,
  evaluateItemResources,
  itemProblem,
  PackedItems,
  parseArray,
  storedJson,
} from "../../../src/core/items.ts";
import { itemOf } from "../../../src/core/item.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";

const group = (fields: Partial<GroupSpec> = {}): GroupSpec => ({
  name: "g",
  command: ["true"],
  items: { kind: "list", count: 1 },
  after: [],
  resources: { cpus: 10_000 },
  priority: 0,
  retries: 0,
  retryDelay: 0,
  executor: "process",
  ...fields,
});

describe("parseArray", () => {
  it.each([
    ["1-5", ["1", "2", "3", "4", "5"]],
    ["1-10:3", ["1", "4", "7", "10"]],
    ["5", ["5"]],
    ["0-0", ["0"]],
    ["1-3,7", ["1", "2", "3", "7"]],
    [" 1-2 , 4 ", ["1", "2", "4"]],
    [7, ["7"]],
  ])("reads %j", (text, values) => {
    const array = parseArray(text);
    expect([...arrayValues(array)]).toEqual(values);
    expect(array.count).toBe(values.length);
  });

  it("counts without allocating", () => {
    expect(parseArray("1-1000000000").count).toBe(1e9);
    expect(parseArray("1-9007199254740991").count).toBe(Number.MAX_SAFE_INTEGER);
  });

  it.each([
    "",
    "a",
    "1-",
    "-1-5",
    "5-1",
    "1-5:0",
    "1-5%2",
    "1--5",
    "1-5:-1",
    "1,,2",
    "1-99999999999999999999",
    "9007199254740993",
  ])("refuses %j", (text) => expect(() => parseArray(text)).toThrow(RangeError));

  it("refuses endless lists", () => {
    expect(() => parseArray("1,".repeat(200_000))).toThrow(/100,000/);
  });
});

describe("PackedItems", () => {
  it("gives back any text, across blocks and through bytes", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme" }), { maxLength: 50 }),
        fc.integer({ min: 1, max: 300 }),
        (texts, times) => {
          const items = new PackedItems();
          const expected: string[] = [];
          for (let i = 0; i < times; i++) {
            for (const text of texts) {
              items.add(text);
              expected.push(text);
            }
          }
          expect(items.length).toBe(expected.length);
          expect([...items]).toEqual(expected);
          const copy = PackedItems.deserialise(items.serialise(), true);
          expect([...copy]).toEqual(expected);
          expect(copy.bytes).toBe(items.bytes);
          expect(copy.json).toBe(true);
        },
      ),
      { numRuns: 20 },
    );
  });

  it("goes on after being read back, also in a block that is not full", () => {
    const items = new PackedItems();
    for (let i = 0; i < 5000; i++) items.add(`item ${i}`);
    const copy = PackedItems.deserialise(items.serialise());
    for (let i = 5000; i < 10_000; i++) copy.add(`item ${i}`);
    expect(copy.length).toBe(10_000);
    for (const i of [0, 4095, 4096, 4999, 5000, 8191, 8192, 9999]) expect(copy.get(i)).toBe(`item ${i}`);
    expect(() => copy.addBlock(items.encodeBlock(0))).toThrow(/damaged/);
  });

  it("takes large texts and refuses positions outside", () => {
    const items = new PackedItems();
    items.add("");
    items.add("é".repeat(100_000));
    expect(items.get(0)).toBe("");
    expect(items.get(1)).toHaveLength(100_000);
    expect(items.bytes).toBe(200_000);
    for (const index of [-1, 2, 0.5, Number.NaN]) expect(() => items.get(index)).toThrow(RangeError);
  });

  it("refuses damaged blocks", () => {
    const items = new PackedItems();
    for (let i = 0; i < 10; i++) items.add(`x${i}`);
    const good = items.encodeBlock(0);
    const damaged = [Buffer.alloc(0), good.subarray(0, 20), Buffer.concat([good, Buffer.alloc(1)])];
    const swapped = Buffer.from(good);
    swapped.writeUInt32LE(1_000_000, 8);
    const huge = Buffer.from(good);
    huge.writeUInt32LE(0xffff_ffff, 0);
    for (const bytes of [...damaged, swapped, huge])
      expect(() => new PackedItems().addBlock(bytes)).toThrow(RangeError);
  });

  it("is compact", () => {
    const items = new PackedItems();
    for (let i = 0; i < 200_000; i++) items.add(String(i));
    let stored = 0;
    for (const block of items.serialise()) stored += block.length;
    expect(stored).toBeLessThan(items.bytes + 4 * items.length + 1000);
  });
});

describe("items", () => {
  it("JSON strings are themselves, everything else is JSON", () => {
    expect(itemOf(storedJson("a b"), true).text).toBe("a b");
    expect(itemOf(storedJson({ a: 1 }), true).text).toBe('{"a":1}');
    expect(itemOf('"quoted line"', false).text).toBe('"quoted line"');
  });

  it("refuses what no process can receive", () => {
    expect(itemProblem("fine", false)).toBeUndefined();
    expect(itemProblem("a\0b", false)).toMatch(/NUL/);
    expect(itemProblem("\ud800", false)).toMatch(/surrogate/);
    expect(itemProblem(storedJson({ a: ["x\0"] }), true)).toMatch(/NUL/);
    expect(itemProblem(storedJson({ "\0": 1 }), true)).toMatch(/NUL/);
    expect(itemProblem(storedJson({ a: "\ud800" }), true)).toMatch(/surrogate/);
    expect(itemProblem(storedJson({ a: "tab\u0001 \\u0000" }), true)).toBeUndefined();
    expect(itemProblem("x".repeat(131_001), false)).toMatch(/longer/);
    expect(itemProblem(`${"[".repeat(5000)}"\\u0001"${"]".repeat(5000)}`, true)).toBeDefined();
  });

  it("evaluates amounts per item and names the item that is wrong", () => {
    const sized = group({ itemResources: { mem: "{item.mem}", gpus: "{item.g}" } });
    const items = new PackedItems(true);
    for (const item of [
      { mem: "2G", g: 0.5 },
      { mem: 100, g: 1 },
      { mem: "2G", g: 0.5 },
      { mem: "-1", g: 0 },
      { g: 1 },
    ]) {
      items.add(storedJson(item));
    }
    expect(evaluateItemResources(sized, items, 0)).toEqual({ cpus: 10_000, mem: 2 ** 31, gpus: 5000 });
    expect(evaluateItemResources(sized, items, 1)).toEqual({ cpus: 10_000, mem: 100 * 2 ** 20, gpus: 10_000 });
    expect(evaluateItemResources(sized, items, 2)).toBe(evaluateItemResources(sized, items, 0));
    // refused at submit; in a journal, where nothing may fail any more, they ask for what their group does
    expect(() => checkItem(sized, items.get(3), true, 3)).toThrow(/item 3 .*mem: must not be negative/);
    expect(() => checkItem(sized, items.get(4), true, 4)).toThrow(/item 4 .*no field 'mem'/);
    for (const bad of [3, 4]) expect(evaluateItemResources(sized, items, bad)).toBe(sized.resources);
    expect(evaluateItemResources(group(), items, 4)).toEqual({ cpus: 10_000 });
  });

  it("checks every field a group names before the item is taken", () => {
    const wants = group({ command: "echo {item.a}", env: { B: "{item.b}" }, stdout: "{item.c.d}" });
    const check = (value: unknown) => () => checkItem(wants, storedJson(value), true, 7);
    expect(check({ a: 1, b: 2, c: { d: 3 } })).not.toThrow();
    expect(check({ a: 1, b: 2, c: {} })).toThrow(/item 7 .*no field 'c.d'/);
    expect(check({ b: 2, c: { d: 3 } })).toThrow(/no field 'a'/);
    expect(check("text")).toThrow(/no field/);
    expect(() => checkItem(group({ command: "cat <<E\n{item}\nE" }), "a\nb", false, 0)).toThrow(/line break/);
    expect(() => checkItem(group(), "a\0", false, 1)).toThrow(/item 1 .*NUL/);
  });
});
