import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { openTestDoors } from "./opened-doors.ts";

/** More than Node asks the kernel for by itself: 511. */
const COMING = 700;
const AT_MOST_MS = 20_000;

/** Opens connections and counts those that were taken: on a thread of its own, since the server's does nothing meanwhile. */
const CALLERS = `
const { connect } = require("node:net");
const { workerData: { port, coming, taken } } = require("node:worker_threads");
const count = new Int32Array(taken);
for (let i = 0; i < coming; i++) {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => undefined);
  socket.once("connect", () => {
    Atomics.add(count, 0, 1);
    Atomics.notify(count, 0);
  });
}
`;

describe("the port for agents", () => {
  const most = Number(readFileSync("/proc/sys/net/core/somaxconn", "latin1"));

  it.skipIf(most <= COMING)(
    "takes many at once while the server is busy: after a restart all agents come",
    async () => {
      const at = await openTestDoors();
      const taken = new SharedArrayBuffer(4);
      const count = new Int32Array(taken);
      const callers = new Worker(CALLERS, { eval: true, workerData: { port: at.port, coming: COMING, taken } });
      try {
        // this thread, which is the server's, takes none of them itself
        for (const until = performance.now() + AT_MOST_MS; performance.now() < until;) {
          const now = Atomics.load(count, 0);
          if (now === COMING) break;
          Atomics.wait(count, 0, now, 1000);
        }
        expect(Atomics.load(count, 0)).toBe(COMING);
      } finally {
        await callers.terminate();
        await at.close();
      }
    },
  );
});
