import { expect, test } from "vitest";
import { readJsonLines, readLines } from "../../../src/client/lines.ts";

async function* chunks(...parts: (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield Buffer.from(part);
}

const all = async <T>(source: AsyncIterable<T>): Promise<T[]> => {
  const found: T[] = [];
  for await (const item of source) found.push(item);
  return found;
};

test("lines are found wherever chunks were cut, characters stay whole", async () => {
  const bytes = Buffer.from('{"a":"é日"}\n\n{"b":1}\n{"last":true}');
  for (let size = 1; size <= bytes.length; size++) {
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
    expect(await all(readLines(chunks(...parts)))).toEqual(['{"a":"é日"}', "", '{"b":1}', '{"last":true}']);
  }
  expect(await all(readJsonLines(chunks(bytes)))).toEqual([{ a: "é日" }, { b: 1 }, { last: true }]);
  expect(await all(readLines(chunks()))).toEqual([]);
});

test("a line without end is refused before it fills the memory", async () => {
  await expect(all(readLines(chunks("x".repeat(60), "x".repeat(60)), 100))).rejects.toThrow("more than 100 bytes");
});

test("what is not JSON is an error that shows it", async () => {
  await expect(all(readJsonLines(chunks('{"a":1}\n<html>\n')))).rejects.toThrow("not JSON: <html>");
});
