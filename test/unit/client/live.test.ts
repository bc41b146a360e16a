import { describe, expect, it } from "vitest";
import { liveEvents, readEvents } from "../../../src/client/live.ts";
import { SlipwayError } from "../../../src/errors.ts";

async function* inPieces(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const frame = (id: string, seq: number): string =>
  `id: ${id}\nevent: event\ndata: {"seq":${seq},"event":"é\\n<b>"}\n\n`;

describe("events of a stream", () => {
  it("are read whole wherever the pieces are cut; comments and unknown fields mean nothing", async () => {
    const text = `retry: 1000\n\n:\n\n${frame("1-1-1", 1)}: hello\n${frame("1-2-1", 2)}event: cut`;
    for (const size of [1, 3, 1000]) {
      const found = [];
      for await (const each of readEvents(inPieces(text, size))) found.push(each);
      expect(found).toEqual([
        { id: "1-1-1", event: { event: "event", data: { seq: 1, event: "é\n<b>" } } },
        { id: "1-2-1", event: { event: "event", data: { seq: 2, event: "é\n<b>" } } },
      ]);
    }
  });

  it("go on after the last id when the connection is lost or the stream ends", async () => {
    const asked: string[] = [];
    const stop = new AbortController();
    async function* cut(text: string): AsyncGenerator<Buffer> {
      yield Buffer.from(text);
      throw new SlipwayError("server-gone", { address: "", detail: "", log: "" });
    }
    const bodies = [cut(frame("1-1-1", 1)), inPieces(frame("1-2-1", 2), 9), inPieces(frame("1-3-1", 3), 9)];
    const events = liveEvents(
      {
        send: async ({ path }) => {
          asked.push(path);
          return bodies.shift() as AsyncIterable<Buffer>;
        },
        following: (options) => options,
      },
      { run: 4, signal: stop.signal },
    );
    const seqs: number[] = [];
    for await (const each of events) {
      if (each.event === "event") seqs.push(each.data.seq);
      if (seqs.length === 3) break;
    }
    expect(seqs).toEqual([1, 2, 3]);
    expect(asked).toEqual(["/live?run=4", "/live?run=4&after=1-1-1", "/live?run=4&after=1-2-1"]);
  });
});
