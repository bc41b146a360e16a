import { expect, test } from "vitest";
import { inBatches, type ItemStream, submission, withUuid } from "../../../src/client/submit.ts";

const lines = async (document: Record<string, unknown>, streams: ItemStream[]): Promise<unknown[]> => {
  const found: unknown[] = [];
  for await (const line of submission(document, streams)) {
    expect(line.endsWith("\n")).toBe(true);
    found.push(JSON.parse(line));
  }
  return found;
};

async function* batches() {
  yield ["a", "b"];
  yield [];
  yield ["c"];
}

test("a submission is the document, its items and the end", async () => {
  expect(await lines({ name: "x" }, [{ group: 1, batches }])).toEqual([
    { name: "x" },
    { group: 1, items: ["a", "b"] },
    { group: 1, items: ["c"] },
    { end: true },
  ]);
});

test("large batches are split, a single large item is not", async () => {
  const item = "x".repeat(400_000);
  const found = await lines({}, [{ group: 0, batches: () => inBatches([item, item, item, "y".repeat(900_000)]) }]);
  const items = found.slice(1, -1) as { items: string[] }[];
  expect(items.map((it) => it.items.length)).toEqual([1, 1, 1, 1]);
  expect(items.flatMap((it) => it.items).map((it) => it.length)).toEqual([400_000, 400_000, 400_000, 900_000]);
});

test("no line holds more items than the server takes at once", async () => {
  const found = await lines({}, [
    {
      group: 0,
      batches: () =>
        inBatches(
          Array.from({ length: 90_000 }, () => ""),
          90_000,
        ),
    },
  ]);
  const sizes = (found.slice(1, -1) as { items: string[] }[]).map((it) => it.items.length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(20_000);
  expect(sizes.reduce((sum, size) => sum + size)).toBe(90_000);
});

test("items are gathered into batches", async () => {
  const found: number[][] = [];
  for await (const batch of inBatches([1, 2, 3, 4, 5], 2)) found.push(batch);
  expect(found).toEqual([[1, 2], [3, 4], [5]]);
});

test("a uuid is kept or made", async () => {
  expect(await withUuid({ uuid: "u" })).toEqual({ uuid: "u" });
  expect((await withUuid({}))["uuid"]).toMatch(/^[0-9a-f-]{36}$/);
});
