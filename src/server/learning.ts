import type { ClustersConfig } from "../config/clusters-file.ts";
import type { Group } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { type Expected, createExpected } from "../learned/expected.ts";
import type { Clock } from "./clock.ts";
import { loadLearned, saveLearned } from "./learned-file.ts";
import type { Log } from "./logger.ts";

/** What was learned: read at the start, made up from the state, saved while it changes and at the end. */
export interface Learning {
  readonly expected: Expected;
  /** From now on it is saved at intervals. */
  start(): void;
  /** Saves it for the last time. Never fails. */
  close(): Promise<void>;
}

export interface LearningOptions {
  readonly home: string;
  readonly state: State;
  readonly clock: Clock;
  readonly clusters: Pick<ClustersConfig, "clusters" | "default">;
  /** Whether this server may write to the home now. */
  readonly mayWrite: () => boolean | Promise<boolean>;
  readonly log: Log;
}

/** Saved at most this often, and rarely enough to write no more than this many bytes a second. */
const SAVE_MS = 60_000;
const MOST_RATE = 64_000;
/** What ended this long before it was saved is in it, however late results come. */
const LATE_MS = 3_600_000;

/** Milliseconds to expect where nothing is known, as the queue says where the tasks of a group go. */
export const unknownMs = (
  { clusters, default: fallback }: LearningOptions["clusters"],
  { spec }: Pick<Group, "spec">,
): number => {
  const queues = clusters.get(spec.cluster ?? fallback)?.queues;
  const queue = queues?.get(spec.queue ?? "") ?? queues?.values().next().value;
  return (queue?.fleet.unknownTaskDuration ?? 60) * 1000;
};

export const openLearning = async (options: LearningOptions): Promise<Learning> => {
  const { home, state, clock, clusters, mayWrite, log } = options;
  const { learned, saved } = await loadLearned(home, log);
  const expected = createExpected(learned, {
    defaultCluster: clusters.default,
    unknownMs: (group) => unknownMs(clusters, group),
  });
  expected.catchUp(state.runs.values(), saved - LATE_MS);
  for (const run of state.live) expected.begin(run);

  let savedChanges = 0;
  let timer: NodeJS.Timeout | undefined;
  let complained = false;
  let underWay: Promise<void> = Promise.resolve();

  const save = async (): Promise<number> => {
    const { changes } = learned;
    if (changes === savedChanges || !(await mayWrite())) return 0;
    try {
      const bytes = await saveLearned(home, learned, clock());
      savedChanges = changes;
      complained = false;
      return bytes;
    } catch (error) {
      if (!complained) log(`what was learned could not be saved: ${(error as Error).message}`);
      complained = true;
      return 0;
    }
  };

  const plan = (ms: number): void => {
    timer = setTimeout(() => {
      underWay = save().then((bytes) => {
        if (timer !== undefined) plan(Math.max(SAVE_MS, (bytes / MOST_RATE) * 1000));
      });
    }, ms).unref();
  };

  return {
    expected,
    start: () => plan(SAVE_MS),
    close: async () => {
      clearTimeout(timer);
      timer = undefined;
      await underWay;
      await save();
    },
  };
};
