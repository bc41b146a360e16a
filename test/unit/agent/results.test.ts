import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createResultStore } from "../../../src/agent/results.ts";
import { unpackResults } from "../../../src/core/columns.ts";

const result = (run: number, row: number) => ({
  run,
  row,
  attempt: 1,
  ending: 0,
  code: 0,
  started: 1,
  finished: 2,
  outAt: -1,
  outBytes: 0,
  errBytes: 0,
});

describe("rule 4: results are kept until they are acknowledged", () => {
  it("rule 4: every result is in exactly one message, numbers count up, and acknowledgements are watermarks", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.record({ run: fc.integer({ min: 1, max: 3 }) }),
            fc.constant("take" as const),
            fc.constant("ack" as const),
          ),
          { maxLength: 300 },
        ),
        (steps) => {
          const store = createResultStore();
          const rows: string[] = [];
          const sent: string[] = [];
          let seq = 0;
          let row = 0;
          const take = (): void => {
            for (const message of store.take()) {
              expect(message.seq).toBe((seq += 1));
              for (const part of message.parts)
                for (const each of unpackResults(part).rows) sent.push(`${part.run}.${each}`);
            }
          };
          for (const step of steps) {
            if (step === "take") take();
            else if (step === "ack") {
              store.acknowledged(seq - 1);
              expect(store.unacknowledged.every((message) => message.seq > seq - 1)).toBe(true);
            } else {
              row += 1;
              rows.push(`${step.run}.${row}`);
              store.add(result(step.run, row));
            }
          }
          take();
          expect(sent.toSorted()).toEqual(rows.toSorted());
          store.acknowledged(seq);
          expect(store.unacknowledged).toEqual([]);
        },
      ),
    );
  });

  it("does not grow one message without end", () => {
    const store = createResultStore();
    for (let row = 0; row < 50_000; row += 1) store.add(result(1, row));
    const messages = store.take();
    expect(messages.length).toBe(3);
    expect(messages.every((message) => message.parts[0]!.n <= 20_000)).toBe(true);
  });
});
