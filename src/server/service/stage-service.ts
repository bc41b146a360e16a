import type { LiveRun } from "../../api/live.ts";
import type { Service } from "../../api/service.ts";
import type { Group, Run } from "../../core/run.ts";
import { type Medians, medianOf, stagePage, stageViews } from "../../views/stages.ts";
import { runView, summaryView } from "../../views/views.ts";
import type { ServiceContext } from "./context.ts";
import type { Etas } from "./etas.ts";

/** Runs by stages, for whoever asks once and for those who watch. */
export interface StageService extends Pick<Service, "stages"> {
  /** Throws no-such-run. */
  liveRun(id: number): Promise<LiveRun>;
  /** Undefined: it is not in memory. */
  liveRunNow(id: number): LiveRun | undefined;
  /** Other when anything of the run has changed. */
  runStamp(id: number): string;
}

/** What tasks took in the middle is worked out again after this long, while the run goes on. */
const MEDIANS_MS = 10_000;
const MOST_MEDIANS = 10_000;

interface KeptMedians {
  readonly at: number;
  readonly finished: number;
  readonly of: Map<number, number | null>;
}

export const createStageService = (
  { engine, shelf }: Pick<ServiceContext, "engine" | "shelf">,
  etas: Etas,
): StageService => {
  const { state, clock } = engine;
  const kept = new WeakMap<Run, KeptMedians>();

  const mediansOf = (run: Run): Medians => {
    let medians = kept.get(run);
    const now = clock();
    const isOld = medians === undefined || medians.finished !== run.finished || medians.of.size > MOST_MEDIANS;
    if (medians === undefined || isOld || (run.finished === 0 && now > medians.at + MEDIANS_MS))
      kept.set(run, (medians = { at: now, finished: run.finished, of: new Map() }));
    const { of } = medians;
    return (key: number, groups: readonly Group[]) => {
      let median = of.get(key);
      if (median === undefined) of.set(key, (median = medianOf(run, groups)));
      return median;
    };
  };

  const viewOf = (run: Run): LiveRun => ({
    run: runView(run, clock(), etas.of(run)),
    ...stageViews(run, mediansOf(run)),
  });

  return {
    stages: async (id, query) => {
      const run = await shelf.whole(id);
      return stagePage(run, query, mediansOf(run));
    },
    liveRun: async (id) => viewOf(await shelf.whole(id)),
    liveRunNow: (id) => {
      const run = state.runs.get(id);
      return run === undefined ? undefined : viewOf(run);
    },
    runStamp: (id) => {
      const run = state.runs.get(id);
      if (run === undefined)
        return state.archived.has(id) ? `archived ${summaryView(state.archived.get(id)!).finished}` : "";
      return `${run.counts.join()} ${run.retries} ${run.losses} ${run.started} ${run.finished} ${run.canceled}`;
    },
  };
};
