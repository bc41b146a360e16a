import type { TaskRowView } from "../api/task-table.ts";
import { attemptsOf } from "../core/past-attempts.ts";
import { type Run, groupOf, indexOfRow } from "../core/run.ts";
import { isSkipped } from "../core/skipped.ts";
import type { State } from "../core/state.ts";
import { taskStateName } from "../core/states.ts";
import { stateOf } from "../core/table.ts";
import { agentOf } from "../core/task-job.ts";
import { usedBy } from "../core/usage.ts";
import { expandView, isoTime, itemTextOf, signalName, sizeOf, taskName } from "./views.ts";
import type { Row } from "../core/ids.ts";

/** A task as a row of the table of its run: its latest attempt, flat. */
export const taskRow = (state: State, run: Run, row: Row, now: number): TaskRowView => {
  const group = groupOf(run.groups, row);
  const attempts = attemptsOf(run, row);
  const last = attempts.at(-1);
  const agent = last === undefined ? undefined : agentOf(state, run, last.agent);
  const { started = 0, finished = 0 } = last ?? {};
  const used = last?.usage === undefined ? undefined : usedBy(last.usage);
  const index = indexOfRow(run, row);
  return {
    id: `${run.id}.${index}`,
    index,
    name: taskName(run, row),
    group: group.spec.name,
    item: itemTextOf(group, row),
    state: taskStateName(stateOf(run.table, row)),
    skipped: isSkipped(run, row),
    exitCode: last === undefined || last.exit < 0 ? null : last.exit,
    signal: last === undefined ? null : signalName(last.signal),
    reason: last?.reason || null,
    attempts: last?.n ?? 0,
    lost: attempts.reduce((count, attempt) => count + (attempt.lost ? 1 : 0), 0),
    host: agent?.host || null,
    agent: last === undefined || last.agent === 0 ? null : String(last.agent),
    pilot: agent === undefined || agent.pilot === 0 ? null : String(agent.pilot),
    started: isoTime(started),
    finished: isoTime(finished),
    wall: started === 0 ? null : Math.max(0, Math.round((finished > 0 ? finished : now) - started)) / 1000,
    cpuUser: used === undefined ? null : used.userMs / 1000,
    cpuSystem: used === undefined ? null : used.systemMs / 1000,
    peakMemory: last?.peak?.bytes ?? null,
    readBytes: used?.readBytes ?? null,
    writtenBytes: used?.writtenBytes ?? null,
    stdoutBytes: finished === 0 ? null : sizeOf(last!.outBytes),
    stderrBytes: finished === 0 ? null : sizeOf(last!.errBytes),
    command: expandView(run, row, Math.max(1, last?.n ?? 1)).command,
  };
};
