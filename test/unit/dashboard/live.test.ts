import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { backoff } from "../../../dashboard/data/backoff.ts";
import { createEventReader } from "../../../dashboard/data/sse.ts";

describe("Server-Sent Events", () => {
  const stream =
    ': hello\n\nid: 1-1\nevent: overview\ndata: {"a":1}\n\nid: 1-2\r\nevent: run\r\ndata: x\r\ndata: y\r\n\r\n: warm\n\ndata: z\n\n';

  it("are the same in whatever pieces they come", () => {
    const whole = createEventReader()(stream);
    expect(whole).toEqual([
      { id: "1-1", event: "overview", data: '{"a":1}' },
      { id: "1-2", event: "run", data: "x\ny" },
      { id: "1-2", event: "message", data: "z" },
    ]);
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 12 }), (cuts) => {
        const read = createEventReader();
        const edges = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
        const found = edges.slice(1).flatMap((end, i) => read(stream.slice(edges[i], end)));
        expect(found).toEqual(whole);
      }),
    );
  });

  it("without an end are not kept for ever", () => {
    const read = createEventReader();
    expect(() => {
      for (let i = 0; i < 10; i++) read("x".repeat(1024 * 1024));
    }).toThrow("no end");
  });
});

it("whoever comes back waits longer each time, up to a limit, and not all at once", () => {
  const waits = Array.from({ length: 40 }, (_, failures) => backoff(failures, () => 1));
  expect(waits.slice(0, 3)).toEqual([400, 800, 1600]);
  expect(Math.max(...waits)).toBe(15_000);
  expect(backoff(3, () => 0)).toBe(backoff(3, () => 1) / 2);
});
