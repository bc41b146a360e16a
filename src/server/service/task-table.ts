import { setImmediate as nextTurn } from "node:timers/promises";
import type { Service } from "../../api/service.ts";
import type { TaskLine, TaskTableQuery } from "../../api/task-table.ts";
import type { Run } from "../../core/run.ts";
import type { State } from "../../core/state.ts";
import { TASK_STATES } from "../../core/states.ts";
import { agentOf } from "../../core/task-job.ts";
import { type TaskCursor, type TaskFilter, type TaskPage, findTasks } from "../../core/task-query.ts";
import { taskRow } from "../../views/task-rows.ts";
import type { ServiceContext } from "./context.ts";

/** The table of a run's tasks, page by page, without keeping others waiting. */

interface Cursor extends TaskCursor {
  /** When the first page was asked for: all pages measure running tasks by it. */
  readonly at: number;
}

export const encodeCursor = ({ row, key, at }: Cursor): string =>
  `${row}~${Number.isFinite(key) ? key : "-"}~${Math.round(at)}`;

/** Of what `TASK_CURSOR` has let through. */
export const decodeCursor = (text: string): Cursor => {
  const [row, key, at] = text.split("~") as [string, string, string];
  return { row: Number(row), key: key === "-" ? Infinity : Number(key), at: Number(at) };
};

const filterOf = (state: State, run: Run, query: TaskTableQuery): TaskFilter => {
  const { states, names, hosts, exitCodes, longer, endedSince, lost } = query;
  const wanted = new Set(hosts);
  const known = new Map<number, boolean>();
  const isAt = (agent: number): boolean => {
    let is = known.get(agent);
    if (is === undefined) known.set(agent, (is = wanted.has(agentOf(state, run, agent)?.host ?? "")));
    return is;
  };
  return {
    ...(states.length > 0 && { states: new Set(states.map((name) => TASK_STATES.indexOf(name))) }),
    ...(names.length > 0 && { names: new Set(names) }),
    ...(hosts.length > 0 && { isAt }),
    ...(exitCodes.length > 0 && { exitCodes: new Set(exitCodes) }),
    ...(longer !== undefined && { longer: longer * 1000 }),
    ...(endedSince !== undefined && { endedSince }),
    ...(lost && { lost }),
  };
};

/** Rows that are made into lines in one turn, and leave together. */
const LINES_A_TURN = 200;

const inTurns = async (search: Generator<undefined, TaskPage>, signal: AbortSignal): Promise<TaskPage> => {
  for (;;) {
    const step = search.next();
    if (step.done === true) return step.value;
    signal.throwIfAborted();
    await nextTurn();
  }
};

export const createTaskTable = ({
  engine: { state, clock },
  shelf,
}: Pick<ServiceContext, "engine" | "shelf">): Pick<Service, "taskTable"> => {
  async function* lines(run: Run, query: TaskTableQuery, signal: AbortSignal): AsyncGenerator<readonly TaskLine[]> {
    const after = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
    const at = after?.at ?? clock();
    const { sort, reverse, limit } = query;
    const search = findTasks(run, { ...filterOf(state, run, query), sort, reverse, limit, after }, at);
    const { rows, next } = await inTurns(search, signal);
    for (let from = 0; from < rows.length; from += LINES_A_TURN) {
      yield rows.slice(from, from + LINES_A_TURN).map((row) => taskRow(state, run, row, at));
      await nextTurn();
    }
    yield [{ next: next === undefined ? null : encodeCursor({ ...next, at }) }];
  }
  return {
    taskTable: async (id, query, signal) => {
      if (query.cursor !== undefined) decodeCursor(query.cursor);
      return lines(await shelf.whole(id), query, signal);
    },
  };
};
