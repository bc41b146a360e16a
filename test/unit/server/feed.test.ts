import { describe, expect, it } from "vitest";
import { createFeed } from "../../../src/server/feed.ts";

describe("rule 11: back-pressure", () => {
  it("rule 11: a reader of events that is too slow is dropped with a resume point", async () => {
    const feed = createFeed();
    const stream = feed.follow(undefined, new AbortController().signal);
    const first = stream.next();
    for (let i = 0; i < 30_000; i += 1) feed.publish({ event: "test", run: i }, 0);
    const got: unknown[] = [(await first).value];
    for await (const event of stream) got.push(event);
    const last = got.at(-1) as { resume: number };
    expect(last.resume).toBeGreaterThanOrEqual(0);
    expect(got.length).toBeLessThan(30_000);
    // from there it can go on, as far as the past is remembered
    expect(feed.since(Math.max(last.resume, 20_000), undefined).length).toBeGreaterThan(0);
  });

  it("remembers a bounded past, by run", () => {
    const feed = createFeed();
    for (let i = 1; i <= 25_000; i += 1) feed.publish({ event: "test", run: i % 2 }, 0);
    expect(feed.since(0, undefined)).toHaveLength(10_000);
    expect(feed.since(0, 1).every(({ run }) => run === 1)).toBe(true);
    expect(feed.since(24_999, undefined).map(({ seq }) => seq)).toEqual([25_000]);
  });
});
