import { describe, expect, it } from "vitest";
import { packr } from "../../../src/core/codec.ts";
import { type PackedColumns, packResults, unpackResults } from "../../../src/core/columns.ts";
import { Lost, lostOf } from "../../../src/core/output-lost.ts";
import { createRunDecoder, encodeRun, summarise } from "../../../src/core/snapshot.ts";
import { createDriver, group, spec } from "./model.ts";

const plainPages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };

const RUN = 110;

/** A run of two tasks whose attempts left and lost output. */
const sample = () => {
  const driver = createDriver();
  const run = driver.submit(spec([group("g", 2)]));
  const agent = driver.join();
  const result = (seq: number, row: number, code: number, bytes: number, lost: number): void =>
    driver.send({
      type: "tasks.ended",
      at: 100 + seq,
      agent,
      seq,
      parts: [
        {
          run: run.id,
          rows: Uint32Array.of(row),
          attempt: seq > 2 ? 2 : 1,
          ending: 0,
          code,
          started: 50,
          finished: 60,
          outAt: 0,
          outBytes: bytes,
          errBytes: 1,
          details: [],
          lost: lost === 0 ? [] : [[0, lost, 0, Lost.PER_RUN]],
        },
      ],
    });
  driver.assign(agent, run.id, 0);
  driver.assign(agent, run.id, 1);
  result(1, 0, 0, 10, 0);
  result(2, 1, 1, 20, 7);
  return { driver, run, agent, result };
};

describe("output that was not kept", () => {
  it("is known of each attempt: the old one's moves to the history with it", () => {
    const { driver, run, agent, result } = sample();
    expect(lostOf(run, 0)).toBeUndefined();
    expect(lostOf(run, 1)).toEqual({ stdout: 7, stderr: 0, reason: Lost.PER_RUN });
    expect(run.lost).toMatchObject({ tasks: 1, bytes: 7 });
    expect(summarise(run, "f").outputLost).toEqual({ tasks: 1, bytes: 7 });
    driver.send({ type: "run.retried", at: 200, run: run.id, which: "failed" });
    expect(run.lost).toMatchObject({ tasks: 0, bytes: 0 });
    expect(run.history.get(1)![0]!.outputLost).toEqual({ stdout: 7, stderr: 0, reason: Lost.PER_RUN });
    driver.assign(agent, run.id, 1);
    result(3, 1, 0, 30, 0);
    expect(run.lost.tasks).toBe(0);
    expect(summarise(run, "f").outputLost).toBeUndefined();
    // what all attempts left is on disk, whichever of them counts
    expect(run.outputBytes).toBe(63);
  });

  it("what a run has left is counted anew from a snapshot that did not count it", () => {
    const { run } = sample();
    const decode = createRunDecoder(plainPages);
    let restored;
    for (const { type, payload } of encodeRun(run, plainPages)) {
      const body = packr.unpack(payload) as Record<string, unknown>;
      if (type === RUN) delete body["outputBytes"];
      // snapshots of the previous version had no such part either
      if (type !== 165) restored = decode({ type, payload: type === RUN ? packr.pack(body) : payload });
    }
    expect(restored).toMatchObject({ outputBytes: 32, lost: { tasks: 0, bytes: 0 } });
  });

  it("is refused where no agent could have sent it", () => {
    const good = packResults({
      run: 1,
      rows: Uint32Array.of(0, 1),
      attempt: 1,
      ending: 0,
      code: 0,
      started: 0,
      finished: 0,
      outAt: -1,
      outBytes: 0,
      errBytes: 0,
      details: [],
      lost: [[1, 5, 0, 3]],
    });
    expect(unpackResults(good).lost).toEqual([[1, 5, 0, 3]]);
    for (const lost of [
      5,
      {},
      [5],
      [[0, 1, 2]],
      [[2, 1, 1, 1]],
      [[-1, 1, 1, 1]],
      [[0, -1, 0, 1]],
      [[0, 1e300, 0, 1]],
      [[0, 0.5, 0, 1]],
      [[0, 1, 1, 99]],
      [["0", 1, 1, 1]],
      [[0, Infinity, 0, 1]],
      [
        [0, 1, 1, 1],
        [1, 1, 1, 1],
        [1, 1, 1, 1],
      ],
    ])
      expect(() => unpackResults({ ...good, lost } as unknown as PackedColumns), JSON.stringify(lost)).toThrow(
        RangeError,
      );
  });
});
