import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chunksOf } from "../../../src/managers/chunks.ts";

describe("chunksOf", () => {
  it("loses none, keeps their order, and makes no chunk larger than it may be", () => {
    const ids = fc.array(fc.stringMatching(/^\d{1,9}$/));
    fc.assert(
      fc.property(ids, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 10, max: 40 }), (all, most, characters) => {
        const chunks = chunksOf(all, { ids: most, characters });
        expect(chunks.flat()).toEqual(all);
        for (const chunk of chunks) {
          expect(chunk.length).toBeGreaterThan(0);
          expect(chunk.length).toBeLessThanOrEqual(most);
          expect(chunk.map((id) => `${id},`).join("").length).toBeLessThanOrEqual(characters);
        }
      }),
    );
  });

  it("gives an id that is too long alone a chunk of its own", () => {
    expect(chunksOf(["1", "123456", "2"], { characters: 4 })).toEqual([["1"], ["123456"], ["2"]]);
  });

  it("makes as few as it can", () => {
    expect(chunksOf(["1", "2", "3", "4", "5"], { ids: 2 })).toEqual([["1", "2"], ["3", "4"], ["5"]]);
    expect(chunksOf(["1", "2", "3"], { characters: 4 })).toEqual([["1", "2"], ["3"]]);
    expect(chunksOf([], { ids: 2 })).toEqual([]);
  });
});
