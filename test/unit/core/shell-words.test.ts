import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { quoteFor } from "../../../src/core/shell-quoting.ts";
import { splitWords } from "../../../src/core/shell-words.ts";

describe("the words of a text, as a shell splits it", () => {
  it.each([
    ["", []],
    ["  a\t b\nc ", ["a", "b", "c"]],
    [`a'b c'"d e"f`, ["ab cd ef"]],
    [`'a\\b' "a\\b" "a\\"b" a\\ b`, ["a\\b", "a\\b", 'a"b', "a b"]],
    [`'' ""`, ["", ""]],
    ["a\\", ["a\\"]],
    ["$HOME #x", ["$HOME", "#x"]],
  ])("%j", (text, words) => {
    expect(splitWords(text)).toEqual(words);
  });

  it("an open quote is no text", () => {
    for (const text of [`'a`, `"a`, `a "b' c`]) expect(splitWords(text)).toBeUndefined();
  });

  it("what was quoted comes back, whatever it is", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), (words) => {
        expect(splitWords(words.map((word) => quoteFor(word, "word")).join(" "))).toEqual(words);
      }),
    );
  });
});
