import { type Group, type Run, isFinishedRun } from "../core/run.ts";
import { isSkipped, mayBeSkipped } from "../core/skipped.ts";
import { Task } from "../core/states.ts";
import { Flag, isReady, peek } from "../core/table.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { Engine } from "../server/engine.ts";
import type { Row } from "../core/ids.ts";
import type { Bits } from "./bits.ts";
import type { Look, LookTask } from "./look-files.ts";
import type { Looker } from "./looker.ts";
import { type Before, type Memory, recall, wholeBefore } from "./recall.ts";

/** How a range of tasks is judged: what is remembered, then their files, then the event, or on to the scheduler. */

/** What it needs of an engine. */
export type JudgeEngine = Pick<Engine, "state" | "clock" | "commit" | "schedulePass">;

/** Of one run: tasks that are being judged, and tasks that must run. */
export interface Marks {
  readonly open: Bits;
  readonly run: Bits;
}

/** Tasks that could be placed, of one group. */
export interface Waiting {
  readonly run: Run;
  readonly group: Group;
  readonly from: Row;
  readonly end: Row;
}

export interface JudgingOptions {
  /** Whoever places what must run. */
  readonly scheduler: Scheduler;
  readonly looker: Looker;
  readonly engine: JudgeEngine;
  readonly marksOf: (run: Run) => Marks;
  readonly isClosed: () => boolean;
}

/** Tasks whose files are looked at together, and the bytes of their paths. */
const AT_ONCE = 2000;
const MOST_BYTES = 512 * 1024;
/** How long others wait for their turn of the loop. */
const TURN_MS = 5;

export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Gathers rows, which come in order, as ranges `[from, count, …]`. */
export const addRow = (ranges: number[], row: Row): void => {
  if (ranges.length > 0 && ranges.at(-2)! + ranges.at(-1)! === row) ranges[ranges.length - 1]! += 1;
  else ranges.push(row, 1);
};

const isWaiting = (run: Run, row: Row): boolean => {
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  return page === undefined ? run.table.baseState(row) === Task.PENDING : isReady(page.state[slot]!, page.agent[slot]!);
};

const wasNotNeeded = (run: Run, row: Row): boolean =>
  ((peek(run.table, row)?.flags[row % run.table.pageRows] ?? 0) & Flag.UNNEEDED) !== 0;

/** What only another version let in runs. */
const recallOrRun: typeof recall = (...of) => {
  try {
    return recall(...of);
  } catch {
    return { reason: { kind: "new" } };
  }
};

/** Gives others a turn of the loop when its own has lasted. */
const createPause = (): (() => Promise<void>) => {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < TURN_MS) return;
    await nextTurn();
    since = performance.now();
  };
};

/** Judges ranges, one after the other; resolves when one is decided. */
export const createJudging = (options: JudgingOptions): ((waiting: Waiting) => Promise<void>) => {
  const { scheduler, looker, engine, marksOf, isClosed } = options;
  const isLive = (run: Run): boolean => engine.state.runs.get(run.id) === run && !isFinishedRun(run);

  const memoryOf = (run: Run): Memory => ({
    of: (file) => engine.state.successes.of(file),
    isSkipped: (row) => isSkipped(run, row) || wasNotNeeded(run, row),
  });

  /** These must run: whoever waits for them may have them. */
  const letGo = (run: Run, rows: readonly Row[]): void => {
    const { open, run: must } = marksOf(run);
    const ranges: number[] = [];
    for (const row of rows) {
      if (!open.take(row) || !isWaiting(run, row)) continue;
      must.set(row);
      addRow(ranges, row);
    }
    for (let i = 0; i < ranges.length; i += 2) scheduler.ready(run, ranges[i]!, ranges[i + 1]!);
    if (ranges.length > 0) engine.schedulePass();
  };

  /** What is remembered is asked again: meanwhile another task may have been given the same outputs. */
  const isStillSo = (run: Run, group: Group, row: Row, before: Before, look: Look): boolean => {
    if (look.reason !== null || !marksOf(run).open.has(row) || !mayBeSkipped(run, row)) return false;
    const again = recallOrRun(memoryOf(run), run, group, row, before);
    if ("reason" in again) return false;
    const { contents } = again;
    return contents === undefined || (contents.reason === undefined && contents.match(look.contents ?? 0));
  };

  const settle = ({ run, group }: Waiting, before: Before, looked: readonly Row[], looks?: readonly Look[]): void => {
    if (!isLive(run)) return;
    const { commit, clock } = engine;
    const go: Row[] = [];
    const skip: number[] = [];
    const rows: Row[] = [];
    const contents: number[] = [];
    for (const [i, row] of looked.entries()) {
      const look = looks?.[i];
      if (look !== undefined && isStillSo(run, group, row, before, look)) {
        marksOf(run).open.take(row);
        addRow(skip, row);
        continue;
      }
      go.push(row);
      if (look?.contents === undefined || look.contents === 0 || !isWaiting(run, row)) continue;
      rows.push(row);
      contents.push(look.contents);
    }
    if (rows.length > 0) commit({ type: "inputs.seen", at: clock(), run: run.id, rows, contents });
    letGo(run, go);
    if (skip.length > 0) commit({ type: "tasks.skipped", at: clock(), parts: [{ run: run.id, ranges: skip }] });
  };

  const beforeOf = async ({ run, group }: Waiting, pause: () => Promise<void>): Promise<Before> => {
    const whole = wholeBefore(memoryOf(run), run, group);
    for (let next = whole.next(); ; next = whole.next()) {
      if (next.done === true) return next.value;
      await pause();
    }
  };

  return async (waiting) => {
    const { run, group, from, end } = waiting;
    const memory = memoryOf(run);
    const pause = createPause();
    const before = await beforeOf(waiting, pause);
    let go: Row[] = [];
    let looked: Row[] = [];
    let tasks: LookTask[] = [];
    let bytes = 0;
    const flush = async (): Promise<void> => {
      if (isLive(run)) letGo(run, go);
      go = [];
      if (tasks.length === 0) return;
      settle(waiting, before, looked, await looker.look(tasks));
      looked = [];
      tasks = [];
      bytes = 0;
    };
    for (let row = from; row < end; row += 1) {
      if (isClosed() || !isLive(run)) return;
      if (!marksOf(run).open.has(row)) continue;
      const recalled = recallOrRun(memory, run, group, row, before);
      if ("reason" in recalled) go.push(row);
      else {
        const { files } = recalled;
        looked.push(row);
        tasks.push({ ...files, mode: group.spec.skip ?? "newer" });
        for (const path of [...files.outputs, ...files.inputs]) bytes += path.length;
      }
      if (tasks.length >= AT_ONCE || bytes >= MOST_BYTES || go.length >= AT_ONCE * 5) await flush();
      await pause();
    }
    await flush();
  };
};
