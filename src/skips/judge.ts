import { mayBeSkipped } from "../core/skipped.ts";
import { type Group, type Run, groupOf } from "../core/run.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { Row } from "../core/ids.ts";
import { createBits } from "./bits.ts";
import { type JudgeEngine, type Marks, type Waiting, addRow, createJudging, nextTurn } from "./judging.ts";
import type { Looker } from "./looker.ts";

/**
 * A scheduler that hears of tasks with declared outputs only when it is known that they must run. The decision is made when a task
 * could be placed, since what it reads may be made by what it waits for. What is remembered comes first, and takes no time; only
 * where that agrees are files looked at, many tasks at a time. A skip is journaled; that a task must run is not, and would be found
 * out again after a restart.
 */
export interface Judge {
  readonly scheduler: Scheduler;
  /** From now on it decides. */
  start(engine: JudgeEngine): void;
  /** Whether a task has not been judged yet. */
  isLooking(run: Run, row: Row): boolean;
  /** Resolves when nothing is left to decide. */
  settled(): Promise<void>;
  close(): void;
}

export const judgeFirst = (inner: Scheduler, looker: Looker): Judge => {
  const marks = new WeakMap<Run, Marks>();
  const queue: Waiting[] = [];
  let judge: ReturnType<typeof createJudging> | undefined;
  let underWay: Promise<void> | undefined;
  let closed = false;

  const marksOf = (run: Run): Marks => {
    let known = marks.get(run);
    if (known === undefined) marks.set(run, (known = { open: createBits(run.total), run: createBits(run.total) }));
    return known;
  };

  const work = async (): Promise<void> => {
    // not now: what made them ready is still being applied
    await nextTurn();
    for (let next = queue.shift(); next !== undefined && !closed; next = queue.shift()) await judge!(next);
    underWay = undefined;
  };

  const judgePart = (run: Run, group: Group, from: Row, end: Row): void => {
    const { open, run: must } = marksOf(run);
    const pass: number[] = [];
    const asked: number[] = [];
    for (let row = from; row < end; row += 1)
      if (must.has(row) || !mayBeSkipped(run, row)) addRow(pass, row);
      else {
        open.set(row);
        addRow(asked, row);
      }
    for (let i = 0; i < pass.length; i += 2) inner.ready(run, pass[i]!, pass[i + 1]!);
    for (let i = 0; i < asked.length; i += 2)
      queue.push({ run, group, from: asked[i]!, end: asked[i]! + asked[i + 1]! });
    if (queue.length > 0) underWay ??= work();
  };

  const scheduler: Scheduler = {
    ...inner,
    ready: (run, from, count) => {
      for (let row = from; row < from + count;) {
        const group = groupOf(run.groups, row);
        const end = Math.min(from + count, group.first + group.count);
        if (group.spec.outputs === undefined || judge === undefined) inner.ready(run, row, end - row);
        else judgePart(run, group, row, end);
        row = end;
      }
    },
    unqueue: (run) => {
      marks.get(run)?.open.clear();
      inner.unqueue(run);
    },
    dropRun: (run) => {
      marks.delete(run);
      inner.dropRun(run);
    },
    canceled: (run, from, count) => {
      const open = marks.get(run)?.open;
      if (open !== undefined) for (let row = from; row < from + count; row += 1) open.take(row);
      inner.canceled(run, from, count);
    },
  };

  return {
    scheduler,
    start: (engine) => {
      judge = createJudging({ scheduler: inner, looker, engine, marksOf, isClosed: () => closed });
    },
    isLooking: (run, row) => marks.get(run)?.open.has(row) === true,
    settled: async () => {
      while (underWay !== undefined) await underWay;
    },
    close: () => {
      closed = true;
      looker.close();
    },
  };
};
