import type { RunView } from "../../api/schemas.ts";
import type { Run } from "../../core/run.ts";
import type { Engine } from "../engine.ts";

/** Watching runs: a view now, then one whenever it changes, until the run has ended. */
export interface RunWatch {
  watch(id: number, view: () => RunView, signal: AbortSignal): AsyncGenerator<RunView>;
  /** Wakes its watchers at once. */
  runFinished(run: Run): void;
}

/** Milliseconds between two looks at a run that has not ended. */
const LOOK_MS = 100;

export const createRunWatch = (engine: Pick<Engine, "whenDurable">): RunWatch => {
  const watchers = new Map<number, Set<() => void>>();

  /** Resolves after a moment, or at once when the run ends. */
  const nextLook = (id: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        watchers.get(id)?.delete(done);
        resolve();
      };
      const timer = setTimeout(done, LOOK_MS);
      signal.addEventListener("abort", done, { once: true });
      if (!watchers.has(id)) watchers.set(id, new Set());
      watchers.get(id)!.add(done);
    });

  return {
    async *watch(id, view, signal) {
      let last = "";
      for (;;) {
        const now = view();
        const { eta: _, etaRange: __, ...facts } = now;
        const text = JSON.stringify(facts);
        // report the end only when it is on disk
        if (now.finished !== null) await engine.whenDurable();
        if (text !== last) yield now;
        last = text;
        if (now.finished !== null || signal.aborted) return;
        await nextLook(id, signal);
      }
    },
    runFinished: (run) => {
      for (const wake of watchers.get(run.id) ?? []) wake();
      watchers.delete(run.id);
    },
  };
};
