import { setImmediate as nextTurn } from "node:timers/promises";
import type { Service } from "../../api/service.ts";
import type { TaskLine, TaskTableQuery } from "../../api/task-table.ts";
import type { Run } from "../../core/run.ts";
import type { State } from "../../core/state.ts";
import { TASK_STATES } from "../../core/states.ts";
import { agentOf } from "../../core/task-job.ts";
import { type TaskCursor, type TaskFilter, findTasks } from "../../core/task-query.ts";
import { type TaskOrder, orderTasks } from "../../core/task-order.ts";
import { taskRow } from "../../views/task-rows.ts";
import type { ServiceContext } from "./context.ts";
import { inTurns } from "./turns.ts";

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

/** Of a run that goes on, an order is good for this long: the rows themselves are as they are now. */
const KEPT_MS = 2000;
const MOST_KEPT = 8;
/** Rows of all kept orders together: 4 to 8 bytes each. */
const MOST_ROWS = 20_000_000;

interface KeptOrder {
  readonly run: Run;
  readonly stamp: string;
  readonly at: number;
  readonly order: Promise<TaskOrder>;
}

/** Equal texts: no task of it has moved. */
const stampOf = ({ counts, retries, losses, finished }: Run): string =>
  `${counts.join()} ${retries} ${losses} ${finished}`;

/** Orders for those who jump from page to page: made once for each state of a run, whoever asks. */
const createOrders = (state: State, clock: () => number) => {
  const kept = new Map<string, KeptOrder>();
  return async (run: Run, query: TaskTableQuery): Promise<TaskOrder> => {
    const key = `${run.id} ${JSON.stringify({ ...query, offset: 0, limit: 0, cursor: "" })}`;
    const known = kept.get(key);
    const now = clock();
    kept.delete(key);
    if (known?.run === run && (known.stamp === stampOf(run) || now < known.at + KEPT_MS)) {
      kept.set(key, known);
      return known.order;
    }
    const { sort, reverse } = query;
    const wanted = { sort, reverse, filter: filterOf(state, run, query) };
    // whoever asked first may go: others wait for it too
    const order = inTurns(orderTasks(run, wanted, now));
    kept.set(key, { run, stamp: stampOf(run), at: now, order });
    const made = await order;
    for (const [each, { order: other }] of kept) {
      if (kept.size <= MOST_KEPT && made.total <= MOST_ROWS) break;
      if (other !== order) kept.delete(each);
      else if (made.total > MOST_ROWS) kept.delete(each);
    }
    return made;
  };
};

export const createTaskTable = ({
  engine: { state, clock },
  shelf,
}: Pick<ServiceContext, "engine" | "shelf">): Pick<Service, "taskTable"> => {
  const orderOf = createOrders(state, clock);

  async function* rowsAs(run: Run, rows: readonly number[], at: number): AsyncGenerator<readonly TaskLine[]> {
    for (let from = 0; from < rows.length; from += LINES_A_TURN) {
      yield rows.slice(from, from + LINES_A_TURN).map((row) => taskRow(state, run, row, at));
      await nextTurn();
    }
  }

  /** Any page at once. */
  async function* jump(run: Run, query: TaskTableQuery, offset: number): AsyncGenerator<readonly TaskLine[]> {
    const { total, page } = await orderOf(run, query);
    yield* rowsAs(run, page(offset, query.limit), clock());
    yield [{ next: null, total }];
  }

  async function* lines(run: Run, query: TaskTableQuery, signal: AbortSignal): AsyncGenerator<readonly TaskLine[]> {
    const after = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
    const at = after?.at ?? clock();
    const { sort, reverse, limit } = query;
    const search = findTasks(run, { ...filterOf(state, run, query), sort, reverse, limit, after }, at);
    const { rows, next } = await inTurns(search, signal);
    yield* rowsAs(run, rows, at);
    yield [{ next: next === undefined ? null : encodeCursor({ ...next, at }) }];
  }
  return {
    taskTable: async (id, query, signal) => {
      if (query.cursor !== undefined) decodeCursor(query.cursor);
      const run = await shelf.whole(id);
      return query.offset === undefined ? lines(run, query, signal) : jump(run, query, query.offset);
    },
  };
};
