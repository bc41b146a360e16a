import { decodeEvent, eventName } from "./codec.ts";
import { MOST_ROWS, shapeProblem } from "./event-shapes.ts";
import type { Event, ResultColumns, RowRanges, RunItems, TasksAssigned } from "./events.ts";
import { MAX_PACKED_BYTES } from "./packed-items.ts";
import { taskCount } from "./spec.ts";
import type { State } from "./state.ts";
import { taskJobProblem } from "./task-job.ts";

/**
 * Whether an event may be written: checked before the append, since every start applies what is in the journal.
 * Stricter than `shapeProblem`, the only check on what an earlier version wrote: this one also knows the runs the event
 * refers to.
 */
export const check = (state: State, event: Event): string | undefined => {
  const problem = shapeProblem(event);
  if (problem !== undefined) return problem;
  switch (event.type) {
    case "run.opened":
      return taskCount(event.spec) <= MOST_ROWS ? undefined : `spec has more than ${MOST_ROWS} tasks`;
    case "run.items":
      return checkItems(state, event);
    case "tasks.returned":
    case "tasks.skipped":
      return checkRanges(state, event.parts);
    case "tasks.ended":
      return checkRows(state, event.parts);
    case "tasks.assigned":
      return checkOwnTask(state, event);
    case "task-job.requested":
      return taskJobProblem(state, event);
    default:
      return undefined;
  }
};

/** An event that must not be written, or one in a journal that cannot be applied. */
export class EventRefused extends RangeError {
  constructor(type: string, problem: string) {
    super(`${type}: ${problem}`);
    this.name = "EventRefused";
  }
}

/** Reads an event from a journal, fit to be applied. If it is not fit, throws EventRefused and changes nothing. */
export const readEvent = (type: number, payload: Uint8Array): Event => {
  const name = eventName(type);
  if (name === undefined) throw new EventRefused(`an event of type ${type}`, "this version does not know it");
  let event: Event;
  try {
    event = decodeEvent(type, payload)!;
  } catch (error) {
    throw new EventRefused(name, (error as Error).message);
  }
  const problem = shapeProblem(event);
  if (problem !== undefined) throw new EventRefused(name, problem);
  return event;
};

const checkItems = (state: State, { run, group, items }: RunItems): string | undefined => {
  const before = state.drafts.get(run)?.items.get(group)?.bytes ?? 0;
  // measured exactly only when it might not fit
  let most = before;
  for (const item of items) most += item.length * 3;
  if (most <= MAX_PACKED_BYTES) return undefined;
  const bytes = items.reduce((sum, item) => sum + Buffer.byteLength(item), before);
  return bytes <= MAX_PACKED_BYTES ? undefined : `items are ${bytes} bytes, more than ${MAX_PACKED_BYTES}`;
};

/** An agent in the job of a task gets that task and no other. */
const checkOwnTask = ({ agents, taskJobs }: State, { agent, parts }: TasksAssigned): string | undefined => {
  const of = agents.get(agent)?.taskJob;
  if (of === undefined) return undefined;
  const job = taskJobs.get(of.id);
  const row = job?.elements[of.element]?.row;
  const [only, ...others] = parts;
  const isOwn = only?.run === job?.run && only?.ranges.length === 2 && only.ranges[0] === row && only.ranges[1] === 1;
  return isOwn && others.length === 0 ? undefined : `agent ${agent} runs in a job of another task`;
};

/** Every range is within its run, and no run has more rows here than tasks: so nothing costs more than the run itself. */
const checkRanges = (state: State, parts: readonly RowRanges[]): string | undefined => {
  const seen = new Map<number, number>();
  for (const [nth, { run: id, ranges }] of parts.entries()) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    let rows = seen.get(id) ?? 0;
    for (let i = 0; i < ranges.length; i += 2) {
      rows += ranges[i + 1]!;
      if (ranges[i]! + ranges[i + 1]! > run.total || rows > run.total)
        return `parts[${nth}].ranges: ${ranges[i + 1]} rows from ${ranges[i]} on are more than the ${run.total} tasks of run ${id}`;
    }
    seen.set(id, rows);
  }
  return undefined;
};

const checkRows = (state: State, parts: readonly ResultColumns[]): string | undefined => {
  for (const [nth, { run: id, rows }] of parts.entries()) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    for (let i = 0; i < rows.length; i += 1)
      if (rows[i]! >= run.total)
        return `parts[${nth}].rows: row ${rows[i]} is beyond the ${run.total} tasks of run ${id}`;
  }
  return undefined;
};
