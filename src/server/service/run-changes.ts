import type { Service } from "../../api/service.ts";
import { type Run, isFinishedRun } from "../../core/run.ts";
import { bringBack } from "../../core/snapshot.ts";
import { Task, isFinalTask } from "../../core/states.ts";
import { Flag } from "../../core/table.ts";
import { SlipwayError } from "../../errors.ts";
import { readArchiveSync } from "../../archive/archive.ts";
import type { ServiceContext } from "./context.ts";
import { rowOfTask } from "./run-shelf.ts";

/** What users change about existing runs: both calls answer when the change is on disk. */

/** Tasks that were asked to end and have not yet. */
const countStopping = (run: Run): number => {
  let stopping = 0;
  for (const page of run.table.pages)
    if (page !== undefined)
      for (let slot = 0; slot < page.flags.length; slot += 1)
        if ((page.flags[slot]! & Flag.CANCEL) !== 0 && !isFinalTask(page.state[slot]!)) stopping += 1;
  return stopping;
};

export const createRunChanges = (context: ServiceContext): Pick<Service, "cancel" | "retry"> => {
  const { engine, shelf, home, pilots, mayChange } = context;
  const { state } = engine;

  return {
    cancel: async (id, indices, reason) => {
      mayChange();
      if (state.archived.has(id) && !state.runs.has(id)) return { run: id, canceled: 0, stopping: 0 };
      const run = await shelf.whole(id);
      const rows = indices?.map((index) => rowOfTask(run, index));
      const before = run.counts[Task.CANCELED]!;
      if (!isFinishedRun(run))
        engine.commit({
          type: "run.canceled",
          at: engine.clock(),
          run: id,
          reason,
          ...(rows === undefined ? {} : { rows }),
        });
      const canceled = run.counts[Task.CANCELED]! - before;
      const stopping = countStopping(run);
      engine.schedulePass();
      await engine.whenDurable();
      return { run: id, canceled, stopping };
    },
    retry: async (id, which) => {
      mayChange();
      await shelf.whole(id);
      bringBack(state, id, { restore: (summary) => readArchiveSync(home, summary.file) });
      const run = state.runs.get(id)!;
      if (!isFinishedRun(run))
        throw new SlipwayError("run-active", { run: id, detail: "only a run that has ended can be retried" });
      // an unneeded handler neither failed nor was cancelled
      const reopened = which === "all" ? run.total : run.total - run.counts[Task.DONE]! - run.unneeded;
      if (reopened > 0) engine.commit({ type: "run.retried", at: engine.clock(), run: id, which });
      engine.schedulePass();
      pilots.expectWork();
      await engine.whenDurable();
      return { run: id, reopened };
    },
  };
};
