import type { LaunchChanged } from "../../core/events.ts";
import type { Launch } from "../../core/launch.ts";
import type { Engine } from "../../server/engine.ts";

export type ChangedFacts = Omit<LaunchChanged, "type" | "at" | "launch">;

/** What becomes of launches: journaled, reported to those who wait for it, and logged once. */
export interface LaunchNews {
  /** Writes to the journal, and notifies everyone who watches. */
  change(launch: Launch, facts: ChangedFacts): void;
  /** Makes watchers look again, although nothing was written. */
  wake(): void;
  /** Watches for changes, until the returned function is called. */
  watch(onChange: () => void): () => void;
  readonly isWatched: boolean;
  /** Writes to the log, unless this was the last complaint about the same thing. */
  complain(about: string, text: string): void;
  isWell(about: string): void;
}

export const createNews = (engine: Engine, log: (text: string) => void): LaunchNews => {
  const watchers = new Set<() => void>();
  const problems = new Map<string, string>();
  const wake = (): void => {
    for (const each of watchers) each();
  };
  return {
    change: (launch, facts) => {
      engine.commit({ type: "launch.changed", at: engine.clock(), launch: launch.id, ...facts });
      wake();
    },
    wake,
    watch: (onChange) => {
      watchers.add(onChange);
      return () => void watchers.delete(onChange);
    },
    get isWatched() {
      return watchers.size > 0;
    },
    complain: (about, text) => {
      if (problems.get(about) !== text) log(`${about}: ${text}`);
      problems.set(about, text);
    },
    isWell: (about) => void problems.delete(about),
  };
};
