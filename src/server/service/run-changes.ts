import type { Service } from "../../api/service.ts";
import { type Run, isFinishedRun } from "../../core/run.ts";
import { Task, isFinalTask } from "../../core/states.ts";
import { Flag } from "../../core/table.ts";
import type { ServiceContext } from "./context.ts";
import { rowOfTask } from "./run-shelf.ts";

/** Cancelling what exists: the answer comes when it is on disk. */

/** Tasks that were asked to end and have not yet. */
const countStopping = (run: Run): number => {
  let stopping = 0;
  for (const page of run.table.pages)
    if (page !== undefined)
      for (let slot = 0; slot < page.flags.length; slot += 1)
        if ((page.flags[slot]! & Flag.CANCEL) !== 0 && !isFinalTask(page.state[slot]!)) stopping += 1;
  return stopping;
};

export const createRunChanges = (context: ServiceContext): Pick<Service, "cancel"> => {
  const { engine, shelf, mayChange } = context;
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
  };
};
