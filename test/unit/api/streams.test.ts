import fc from "fast-check";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { MOST_DEPTH, MOST_LINE } from "../../../src/api/bodies.ts";
import { documentValues, readValues } from "../../../src/api/streams.ts";
import { SlipwayError } from "../../../src/errors.ts";

async function* inPieces(text: string | Buffer, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text as string);
  for (let at = 0, i = 0; at < bytes.length; i += 1) {
    const size = sizes[i % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

const valuesOf = async (source: AsyncIterable<Uint8Array>, lines = true): Promise<unknown[]> => {
  const values: unknown[] = [];
  const read = lines ? readValues(source) : documentValues(Readable.from(source).on("error", () => undefined));
  for await (const value of read) values.push(value);
  return values;
};

const problemOf = async (source: AsyncIterable<Uint8Array>, lines = true): Promise<string> => {
  const error = await valuesOf(source, lines).catch((error: unknown) => error);
  return error instanceof SlipwayError ? `${error.code}: ${error.message}` : String(error);
};

describe("the values of a request's body", () => {
  it("come out whole however the stream is cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 10 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        async (values, sizes) => {
          const text = values.map((value) => `${JSON.stringify(value)}\n`).join("\n");
          expect(await valuesOf(inPieces(text, sizes))).toEqual(JSON.parse(JSON.stringify(values)));
        },
      ),
    );
    expect(await valuesOf(inPieces('{"a":\n1}', [3]), false)).toEqual([{ a: 1 }, { end: true }]);
    expect(await valuesOf(inPieces("1\n2", [1]))).toEqual([1, 2]);
  });

  it("a line of 32 MB in small pieces is read in one pass", { timeout: 60_000 }, async () => {
    // 8,000 pieces: scanning all of it again for each would be a hundred gigabytes
    const [value] = await valuesOf(inPieces(`"${"x".repeat(32_000_000)}"\n`, [4000]));
    expect((value as string).length).toBe(32_000_000);
  });

  it("a line that is too long is named, and not kept", async () => {
    const endless = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{"a":1}\n"');
      const piece = Buffer.alloc(1024 * 1024, 0x78);
      for (let i = 0; i <= MOST_LINE; i += piece.length) yield piece;
      throw new Error("it was read on");
    };
    expect(await problemOf(endless())).toMatch(/^too-large: line 2 of the request is over 64 ?M/);
    expect(await problemOf(endless(), false)).toMatch(/^too-large: the request is over 64 ?M/);
  });

  it("what is nested beyond measure, is no UTF-8 or no JSON is refused by its line", async () => {
    const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
    expect(await valuesOf(inPieces(nested(MOST_DEPTH), [7]))).toHaveLength(1);
    for (const depth of [MOST_DEPTH + 1, 20_000])
      expect(await problemOf(inPieces(`1\n${nested(depth)}`, [7]))).toMatch(/^bad-request: line 2 .* nested more than/);
    expect(await valuesOf(inPieces(JSON.stringify({ text: `"\\${nested(500)}` }), [9]))).toHaveLength(1);
    expect(await problemOf(inPieces(Buffer.from([0x22, 0xff, 0x22]), [1]))).toMatch(/^bad-request: line 1 .* UTF-8/);
    expect(await problemOf(inPieces("{", [1]))).toMatch(/^bad-request: line 1 .* not JSON/);
  });
});
