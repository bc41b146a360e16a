// Measures graphs in as many threads as there are cores. Nothing here is timed: what is measured is simulated.
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";

/** What was found of each, in their order; `onFound` hears of each as it comes. */
export const measureGraphs = async (wanted, onFound) => {
  const found = Array.from(wanted, () => undefined);
  const left = wanted.entries();
  const work = async () => {
    const worker = new Worker(new URL("measure.mjs", import.meta.url));
    try {
      for (const [i, each] of left) {
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
        worker.postMessage(each);
        [found[i]] = await once(worker, "message");
        onFound(each, found[i]);
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), wanted.length) }, work));
  return found;
};
