import { enforceMaxFails } from "./attempts.ts";
import type { TasksFailed } from "./events.ts";
import { cascade, endTask } from "./outcomes.ts";
import { hasMoved, newMoved } from "./moved.ts";
import { groupOf, internReason } from "./run.ts";
import type { Apply } from "./state.ts";
import { Task } from "./states.ts";
import { isReady, rangeEnd, touch } from "./table.ts";

/** Tasks that fail while they wait: no pilot starts that could run them. */
export const applyFailed: Apply<TasksFailed> = (state, event, effects) => {
  for (const { run: id, ranges } of event.parts) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    const moved = newMoved();
    const reason = internReason(run, event.reason);
    for (let i = 0; i < ranges.length; i += 2)
      for (let row = ranges[i]!, end = rangeEnd(run.table, ranges, i); row < end; row += 1) {
        const page = touch(run.table, row);
        const slot = row % run.table.pageRows;
        if (!isReady(page.state[slot]!, page.agent[slot]!)) continue;
        const group = groupOf(run.groups, row);
        page.reason[slot] = reason;
        page.finished[slot] = event.at;
        endTask(state, run, group, row, Task.FAILED, event.at, effects, moved);
      }
    if (!hasMoved(moved)) continue;
    cascade(state, run, moved, event.at, effects);
    enforceMaxFails(state, run, event.at, effects);
  }
};
