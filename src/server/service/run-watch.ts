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

/** All but the estimates, which change by themselves. */
const factsOf = (view: RunView): string => {
  const { eta: _, etaRange: __, ...facts } = view;
  return JSON.stringify(facts);
};

export const createRunWatch = (engine: Pick<Engine, "whenDurable">): RunWatch => {
  const watchers = new Map<number, Set<() => void>>();

  /** Resolves after a moment, or at once when the run ends. */
  const nextLook = (id: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        const mine = watchers.get(id);
        if (mine?.delete(done) === true && mine.size === 0) watchers.delete(id);
        resolve();
      };
      const timer = setTimeout(done, LOOK_MS);
      signal.addEventListener("abort", done, { once: true });
      const mine = watchers.get(id);
      if (mine === undefined) watchers.set(id, new Set([done]));
      else mine.add(done);
    });

  return {
    async *watch(id, view, signal) {
      let last: RunView | undefined;
      for (;;) {
        const now = view();
        if (now.finished !== null) {
          // report the end only when it is on disk
          await engine.whenDurable();
          yield now;
          return;
        }
        if (last === undefined || factsOf(now) !== factsOf(last)) yield now;
        last = now;
        if (signal.aborted) return;
        await nextLook(id, signal);
      }
    },
    runFinished: (run) => {
      for (const wake of watchers.get(run.id) ?? []) wake();
    },
  };
};
