import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { itemStreams } from "../../../src/config/item-files.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), "slipway-items-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const group = (changes: Partial<GroupSpec> = {}): GroupSpec => ({
  name: "g",
  command: ["echo", "{item}"],
  items: { kind: "list", count: 0 },
  after: [],
  resources: {},
  priority: 0,
  retries: 0,
  retryDelay: 0,
  executor: "process",
  ...changes,
});

const read = async (kind: "lines" | "json", text: string | Buffer, spec = group()): Promise<unknown[]> => {
  const file = path.join(directory, "items");
  writeFileSync(file, text);
  const place = { where: "command line", key: kind === "lines" ? "--each-line" : "--from-json" };
  const [stream] = await itemStreams([spec], new Map([[0, { kind, path: file, place }]]));
  const items: unknown[] = [];
  for await (const batch of stream!.batches()) items.push(...batch);
  return items;
};

test("each line is an item, the empty ones too", async () => {
  expect(await read("lines", "a\n\nb c \r\nlast")).toEqual(["a", "", "b c ", "last"]);
  expect(await read("lines", "\uFEFFfirst\n")).toEqual(["first"]);
});

test("lines and characters stay whole over the edges of chunks", async () => {
  const lines = Array.from({ length: 100_000 }, (_, i) => `é${i}`);
  expect(await read("lines", lines.join("\n"))).toEqual(lines);
});

test("JSON is an array, or a value a line", async () => {
  expect(await read("json", '\n[1, "a",\n {"b": [2]}]\n')).toEqual([1, "a", { b: [2] }]);
  expect(await read("json", '{"a":1}\n\n"x"\n3')).toEqual([{ a: 1 }, "x", 3]);
  expect(await read("json", "[1,2]\n[3]\n")).toEqual([[1, 2], [3]]);
  expect(await read("json", "[1]")).toEqual([1]);
});

test("large lists of JSON lines are read in pieces", async () => {
  const values = Array.from({ length: 50_000 }, (_, i) => ({ n: i }));
  expect(await read("json", values.map((value) => JSON.stringify(value)).join("\n"))).toEqual(values);
  expect(await read("json", JSON.stringify(values))).toEqual(values);
});

test("errors name the file, the line and the option", async () => {
  const file = path.join(directory, "items");
  await expect(read("lines", "")).rejects.toThrow(`--each-line: ${file} is empty`);
  await expect(read("json", "[]")).rejects.toThrow(`--from-json: ${file} has no items`);
  await expect(read("json", " \n ")).rejects.toThrow("has no items");
  await expect(read("json", '{"a":1}\n{oops}\n')).rejects.toThrow(`${file}:2: not JSON`);
  await expect(read("json", "[1,\n2")).rejects.toThrow(`${file}:1: not JSON`);
  await expect(read("json", "[1]\n{oops}\n")).rejects.toThrow(`${file}:2: not JSON`);
  await expect(read("lines", "a\nb\0c\n")).rejects.toThrow(`${file}:2: item 1 ("b\\u0000c"): contains a NUL`);
  await expect(read("lines", Buffer.from([97, 10, 255, 10]))).rejects.toThrow("not UTF-8");
  await expect(read("lines", "x".repeat(600_000))).rejects.toThrow(`${file}:1: the line is longer than`);
  const fields = group({ command: ["echo", "{item.mem}"] });
  await expect(read("json", '{"mem":1}\n{"men":2}\n', fields)).rejects.toThrow(`${file}:2: item 1`);
});

test("files that cannot be read are refused at once", async () => {
  const place = { where: "run.yaml:4:12", key: "each.lines" };
  const missing = new Map([[0, { kind: "lines" as const, path: path.join(directory, "gone"), place }]]);
  await expect(itemStreams([group()], missing)).rejects.toThrow(/run\.yaml:4:12: cannot read .*gone: there is no such/);
  const folder = new Map([[0, { kind: "lines" as const, path: directory, place }]]);
  await expect(itemStreams([group()], folder)).rejects.toThrow("it is a directory");
});

test("standard input belongs to one task and can be read once", async () => {
  const input = { kind: "lines" as const, path: "-", place: { where: "f.yaml:2:3", key: "each.lines" } };
  expect(await itemStreams([group()], new Map([[0, input]]))).toMatchObject([{ group: 0, once: true }]);
  const twice = new Map([
    [0, input],
    [1, input],
  ]);
  await expect(itemStreams([group(), group()], twice)).rejects.toThrow("standard input can be read by only one task");
});

test("an item that is nested beyond measure is refused by its line", async () => {
  const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  expect(await read("json", `{"a":${nested(99)}}\n1\n`)).toHaveLength(2);
  for (const depth of [100, 20_000])
    await expect(read("json", `1\n{"a":${nested(depth)}}\n`)).rejects.toThrow(/items:2: .*nested more than 100/);
});
