import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Amount, compileAmount, compileFormula, isFormula } from "../../../src/core/amounts.ts";
import { evaluate, parseExpression } from "../../../src/core/formula.ts";
import { itemOf, storedJson } from "../../../src/core/item.ts";
import { FRACTION } from "../../../src/core/resources.ts";

const NO_ITEM = { item: undefined, attempt: 1 };
const of = (value: unknown, attempt = 1) => ({ item: itemOf(storedJson(value), true), attempt });
const worth = (text: string, values = of({ n: 7, "a-b": 3, deep: { list: [5, 6] } }, 2)): number =>
  evaluate(parseExpression(text), values);
const G = 2 ** 30;
const M = 2 ** 20;

/** A formula, and what plain arithmetic makes of it; without divisions by zero. */
const { tree } = fc.letrec<{ tree: { text: string; value: number } }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.nat(50).map((value) => ({ text: String(value), value })),
    fc.constant({ text: "item.n", value: 7 }),
    fc.constant({ text: "attempt", value: 2 }),
    fc.tuple(tie("tree"), fc.constantFrom("+", "-", "*"), tie("tree")).map(([a, op, b]) => ({
      text: `(${a.text}) ${op} (${b.text})`,
      value: op === "+" ? a.value + b.value : op === "-" ? a.value - b.value : a.value * b.value,
    })),
    tie("tree").map(({ text, value }) => ({ text: `(${text}) / 4`, value: value / 4 })),
    tie("tree").map(({ text, value }) => ({ text: `-(${text})`, value: -value })),
    fc
      .tuple(tie("tree"), tie("tree"))
      .map(([a, b]) => ({ text: `max(${a.text}, ${b.text}, 3)`, value: Math.max(a.value, b.value, 3) })),
    fc
      .tuple(tie("tree"), tie("tree"))
      .map(([a, b]) => ({ text: `min(${a.text},${b.text})`, value: Math.min(a.value, b.value) })),
  ),
}));

describe("row 001-8: arithmetic in amounts", () => {
  it("is computed as on paper", () => {
    expect(worth("1 + 2 * 3 - 4 / 8")).toBe(6.5);
    expect(worth("(1 + 2) * -3")).toBe(-9);
    expect(worth("10 - 4 - 3")).toBe(3);
    expect(worth("item.n*attempt+.5")).toBe(14.5);
    expect(worth("item.deep.list.1 + item.a-b")).toBe(9);
    expect(worth("item.n -1")).toBe(6);
    expect(worth("ceil(item.n / 2) + min(4, 2, 3) + max(1, attempt)")).toBe(8);
    // floating point makes 3.0000000000000004 of it
    expect(worth("ceil(0.1 * 30 + 0)")).toBe(3);
    expect(evaluate(parseExpression("item / 2"), { item: itemOf("12", false), attempt: 1 })).toBe(6);
  });

  it("means the same as plain arithmetic, whatever is written", () => {
    fc.assert(
      fc.property(tree, ({ text, value }) => {
        if (text.length <= 1000) expect(worth(text) + 0).toBe(value + 0);
      }),
      { numRuns: 500 },
    );
  });

  it("any text is a number or a RangeError, at once, and nothing in it is executed", () => {
    const word = fc.constantFrom(
      ..."0123456789.,()+-*/{} ",
      "item",
      ".a",
      "attempt",
      "min",
      "max(",
      "ceil(",
      "process",
    );
    const text = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.array(word, { maxLength: 60 }).map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, (written) => {
        let result: number | undefined;
        try {
          result = worth(written);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
        if (result !== undefined) expect(Number.isFinite(result)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ["", /a number is missing before the end/],
    ["1 +", /a number is missing before the end/],
    ["1 2", /an operator is missing before "2"/],
    ["(1", /"\)" is missing before the end/],
    ["1)", /an operator is missing before "\)"/],
    ["min()", /a number is missing before "\)"/],
    ["ceil(1, 2)", /"\)" is missing before ","/],
    ["max", /"max" is not known/],
    ["process.exit(1)", /"process.exit" is not known/],
    ["item.n ** 2", /a number is missing before "\*"/],
    ["1e999", /cannot stand/],
    ["0x10", /cannot stand/],
    ["1 % 2", /"%" cannot stand/],
    ["item[0]", /"\[" cannot stand/],
    ["item.constructor", /no field 'constructor'/],
    ["item.n-1", /no field 'n-1'/],
    ["item.deep", /item.deep is ".*", not a number/],
    ["1 / (item.n - 7)", /divides by zero/],
    [`${"(".repeat(41)}1${")".repeat(41)}`, /at most 40 levels deep/],
    [`${"-".repeat(200)}1`, /at most 40 levels deep/],
    ["1+".repeat(600), /at most 1000 characters/],
    [`1${"* 999999999999999".repeat(50)}`, /too large to compute/],
  ])("%s is refused", (text, message) => expect(() => worth(text)).toThrow(message));

  it.each([["NaN"], ["1e400"], [true], [null], ["12 monkeys"], ["0x10"], [[1]], [""]])(
    "a value of %j is no number",
    (n) => expect(() => worth("item.n * 2", of({ n }))).toThrow(/item\.n is .*(not a number|too large)/),
  );
});

describe("row 001-8: amounts", () => {
  const units = (name: string, text: string, values: Parameters<Amount["unitsFor"]>[0] = of({ n: 7 }, 3)): number =>
    compileFormula(name, text).unitsFor(values);

  it("are sums of formulas with units and constants", () => {
    expect(units("mem", "{item.n * 10}M + 2G")).toBe(70 * M + 2 * G);
    expect(units("mem", "{attempt * 4}G")).toBe(12 * G);
    expect(units("mem", "2G + 512M + { 0.5 }K+1B")).toBe(2 * G + 512 * M + 513);
    expect(units("mem", "{item.n}")).toBe(7 * M);
    expect(units("tmp", "{item.n + 1} GiB")).toBe(8 * G);
    expect(units("cpus", "{item.n / 2} + 1")).toBe(4.5 * FRACTION);
    expect(units("gpus", "{ceil(item.n / 2)}")).toBe(4 * FRACTION);
    expect(units("gpus", "{item.n * 0.1 + 0.2 + 0.1}")).toBe(FRACTION);
    expect(units("licence", "{max(item.n - 6, 0)}")).toBe(FRACTION);
    expect(units("mem", "{1 + 1}G", NO_ITEM)).toBe(2 * G);
  });

  it("say what they depend on", () => {
    expect(compileFormula("mem", "{item.a * item.b.c + attempt}M")).toMatchObject({
      usesItem: true,
      usesAttempt: true,
      fields: [["a"], ["b", "c"]],
    });
    expect(compileFormula("mem", "{item}M + 2G")).toMatchObject({ usesItem: true, usesAttempt: false, fields: [] });
    expect(compileFormula("cpus", "1 + 2")).toMatchObject({ usesItem: false, usesAttempt: false });
  });

  it("are told from placeholders, whose value may be any text that is an amount", () => {
    for (const text of ["{item}G", "{item.mem}", "1{item.a-b}0M", "500M", "{{item}}", "{run}G", "{itm}"])
      expect(isFormula(text), text).toBe(false);
    for (const text of ["{item}G + 1G", "{ item }", "{item.n*2}", "{attempt}G", "1G+1M", "{}", "{item[0]}"])
      expect(isFormula(text), text).toBe(true);
    expect(compileAmount("mem", "{item.n}").unitsFor(of({ n: "2G" }))).toBe(2 * G);
  });

  it.each([
    ["mem", "{item.n}X", /\{item.n\}X: 'X' is not a unit/],
    ["cpus", "{item.n * 1}M", /cpus has no unit/],
    ["mem", "2{item.n * 1}G", /a formula is a sum/],
    ["mem", "{item.n * 1}G - 1G", /a formula is a sum/],
    ["mem", "{item.n * 1}G +", /a formula is a sum/],
    ["mem", "{item.n * 1}{item.n * 1}G", /a formula is a sum/],
    ["mem", "{item.n * {attempt}}G", /a formula is a sum/],
    ["mem", "2X + 1G", /"2X" is not a valid size/],
    ["mem", "{item.n - 8}G", /\{item.n - 8\}G: must not be negative/],
    ["mem", "{item.n * 1000000}G", /more than 1024 TiB/],
    ["cpus", "{item.n * 1000000}", /more than 1000000/],
    ["gpus", "{item.n / 2}", /above 1 must be a whole number/],
    ["licence", "{item.n / 1000000}", /less than the smallest amount/],
    ["mem", `{${"1+".repeat(600)}1}G`, /at most 1000 characters/],
  ])("%s: %s is refused, and the formula named", (name, text, message) =>
    expect(() => units(name, text)).toThrow(message),
  );
});
