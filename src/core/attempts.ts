import { valueAt } from "./columns.ts";
import { addCpuTime } from "./cpu-time.ts";
import {
  Ending,
  NO_CODE,
  type ResultColumns,
  type TasksAssigned,
  type TasksEnded,
  type TasksReturned,
  type AgentsLost,
} from "./events.ts";
import { cpuOfOthers, formGang, gangsWithout, leave } from "./gangs.ts";
import { applyAhead } from "./ahead.ts";
import { forEachAt, holds, isAhead, isAt, whereOf } from "./held.ts";
import { keepAmounts, releaseAmounts } from "./learned-amounts.ts";
import { setLaterShape } from "./later-shapes.ts";
import { type Verdict, isLoss, verdictOf, lossesInCompany } from "./losses.ts";
import { addLost } from "./output-lost.ts";
import { growMemory, grownOf, triedAgain } from "./memory-retry.ts";
import { raisePeak } from "./peak.ts";
import { addUsage } from "./usage.ts";
import { type Moved, hasMoved, newMoved } from "./moved.ts";
import { advance, reopen } from "./moves.ts";
import { cancelRows, cascade, endTask } from "./outcomes.ts";
import { retriesOf, timeLimitOf } from "./retry-set.ts";
import { type Group, type Run, groupOf, internReason, isFinishedRun } from "./run.ts";
import type { Apply, Effects, State } from "./state.ts";
import { Task, isFinalTask } from "./states.ts";
import { noteBegun, noteOver, noteSuccess } from "./successes.ts";
import { spend } from "./task-job.ts";
import { Flag, MOST_LOSSES, type Page, isReady, peek, rangeEnd, setOutput, touch } from "./table.ts";
import type { AgentId, Row } from "./ids.ts";

/** The life of attempts: assigned, returned, ended, lost. */

export const applyAssigned: Apply<TasksAssigned> = (state, event) => {
  spend(state, event.agent);
  for (const { run: id, ranges } of event.parts) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    for (let i = 0; i < ranges.length; i += 2) {
      for (let row = ranges[i]!, end = rangeEnd(run.table, ranges, i); row < end; row += 1) {
        const page = touch(run.table, row);
        const slot = row % run.table.pageRows;
        if (!isReady(page.state[slot]!, page.agent[slot]!)) continue;
        page.attempt[slot]! += 1;
        page.agent[slot] = event.agent;
        const group = groupOf(run.groups, row);
        keepAmounts(group, row);
        noteBegun(state, run, group, row);
        page.assigned[slot] = event.at;
        page.started[slot] = 0;
        page.finished[slot] = 0;
        if (page.state[slot] !== Task.SCHEDULING) advance(state, run, row, Task.SCHEDULING);
        if (event.gang !== undefined) formGang(state, run, row, event.gang);
      }
    }
  }
  applyAhead(state, event);
};

export const applyReturned: Apply<TasksReturned> = (state, event, effects) => {
  for (const { run: id, ranges } of event.parts) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    const moved = newMoved();
    for (let i = 0; i < ranges.length; i += 2)
      for (let row = ranges[i]!, end = rangeEnd(run.table, ranges, i); row < end; row += 1) {
        // no agent has a row of a page that was never touched
        const page = peek(run.table, row);
        const slot = row % run.table.pageRows;
        if (page === undefined || !isAt(page, slot, event.agent)) continue;
        const ahead = isAhead(page, slot);
        if (!ahead) leave(state, run, row, event.agent, effects);
        page.agent[slot] = 0;
        page.attempt[slot]! -= 1;
        releaseAmounts(run, row);
        if ((page.flags[slot]! & Flag.CANCEL) === 0) {
          // it stays in TMGR_SCHEDULING, or in NEW: a task never moves backward within an attempt
          if (!ahead) effects.ready(run, row, 1);
          continue;
        }
        const group = groupOf(run.groups, row);
        endTask(state, run, group, row, Task.CANCELED, event.at, effects, moved);
      }
    if (hasMoved(moved)) cascade(state, run, moved, event.at, effects);
  }
};

/** Signals that end programs, as Linux numbers them on every machine Node runs on. */
const SIGNALS: Readonly<Record<number, string>> = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  4: "SIGILL",
  5: "SIGTRAP",
  6: "SIGABRT",
  7: "SIGBUS",
  8: "SIGFPE",
  9: "SIGKILL",
  10: "SIGUSR1",
  11: "SIGSEGV",
  12: "SIGUSR2",
  13: "SIGPIPE",
  14: "SIGALRM",
  15: "SIGTERM",
  24: "SIGXCPU",
  25: "SIGXFSZ",
  31: "SIGSYS",
};

const describe = (group: Group, row: Row, ending: number, code: number): string => {
  switch (ending) {
    case Ending.SIGNAL:
      return SIGNALS[-code] === undefined ? `killed by signal ${-code}` : `killed by ${SIGNALS[-code]}`;
    case Ending.TIME_LIMIT:
      return `over its time limit of ${timeLimitOf(group, row) ?? 0} s`;
    case Ending.MEMORY:
      return "over its memory limit";
    case Ending.NOT_STARTED:
      return "could not be started";
    case Ending.SPAWNER_LOST:
      return "its spawner ended";
    case Ending.NO_OUTPUT:
      return "an output that it declares is not there";
    default:
      return code === 127
        ? "exit code 127 (command not found)"
        : code === 126
          ? "exit code 126 (not executable)"
          : `exit code ${code}`;
  }
};

/** What was decided about results before they were journaled. */
interface Decided {
  readonly verdict: Verdict;
  /** Tasks that are tried again with more memory. */
  readonly grown: ReadonlyMap<Row, number>;
}

const applyColumns = (
  state: State,
  agent: AgentId,
  run: Run,
  columns: ResultColumns,
  { verdict, grown }: Decided,
  at: number,
  effects: Effects,
): void => {
  const { peak = 0, peakBy = 0, cpu = 0, system = 0, read = 0, written = 0 } = columns;
  const details = new Map(columns.details);
  const lost = new Map(columns.lost?.map(([i, stdout, stderr, reason]) => [i, { stdout, stderr, reason }]));
  const moved = newMoved();
  let any = false;
  let group = run.groups[0]!;
  const settle = (): void => {
    if (!hasMoved(moved)) return;
    any = true;
    cascade(state, run, moved, at, effects);
  };
  for (let i = 0; i < columns.rows.length; i += 1) {
    const row = columns.rows[i]!;
    if (row >= run.total) continue;
    const page = peek(run.table, row);
    const slot = row % run.table.pageRows;
    if (page === undefined) continue;
    // what it was handed ahead behind ended before it, in this very message
    if (isAhead(page, slot)) settle();
    // the result of a superseded attempt, or one that was already applied: no change
    if (page.attempt[slot] !== valueAt(columns.attempt, i) || !holds(page, slot, agent)) continue;
    if (row < group.first || row >= group.first + group.count) group = groupOf(run.groups, row);
    const ofOthers = cpuOfOthers(state, run, row);
    leave(state, run, row, agent, effects);
    noteOver(state, run, group, row);
    const ending = valueAt(columns.ending, i);
    const code = valueAt(columns.code, i);
    const started = valueAt(columns.started, i);
    page.started[slot] = started;
    page.finished[slot] = valueAt(columns.finished, i);
    const [outBytes, errBytes] = [valueAt(columns.outBytes, i), valueAt(columns.errBytes, i)];
    setOutput(page, slot, valueAt(columns.outAt, i), outBytes, errBytes);
    run.outputBytes += outBytes + errBytes;
    if (lost.has(i)) addLost(run, row, lost.get(i)!);
    raisePeak(run, row, valueAt(peak, i), valueAt(peakBy, i));
    addUsage(run, row, valueAt(cpu, i), valueAt(system, i), valueAt(read, i), valueAt(written, i));
    page.exit[slot] = code >= 0 ? code : -1;
    page.signal[slot] = code < 0 && code !== NO_CODE ? -code : 0;
    noteStart(run, started);
    if (ending === Ending.EXIT && code === 0) {
      page.flags[slot]! &= ~Flag.CANCEL;
      page.reason[slot] = 0;
      noteSuccess(state, run, group, row);
      addCpuTime(group, valueAt(cpu, i) + ofOthers, page.finished[slot]! - started);
      endTask(state, run, group, row, Task.DONE, at, effects, moved);
      continue;
    }
    if ((page.flags[slot]! & Flag.CANCEL) !== 0) {
      endTask(state, run, group, row, Task.CANCELED, at, effects, moved);
      continue;
    }
    page.reason[slot] = internReason(run, details.get(i) ?? describe(group, row, ending, code));
    if (ending === Ending.SPAWNER_LOST && (page.flags[slot]! & Flag.ALONE) === 0) {
      // a neighbour may have caused it, and no task is given up for that: running alone will show
      run.losses += 1;
      page.flags[slot]! |= Flag.ALONE;
      reopen(state, run, row, true, Task.PENDING, effects);
      effects.ready(run, row, 1);
      continue;
    }
    if (isLoss(ending)) {
      if (!reopenLost(state, run, row, verdict, effects, lossesInCompany(ending)))
        endTask(state, run, group, row, Task.FAILED, at, effects, moved);
      continue;
    }
    if (ending >= Ending.CANCELED && ending !== Ending.NO_OUTPUT) {
      reopen(state, run, row, true, Task.PENDING, effects);
      effects.ready(run, row, 1);
      continue;
    }
    const more = ending === Ending.MEMORY ? grown.get(row) : undefined;
    if (more !== undefined) {
      page.reason[slot] = internReason(run, triedAgain(group, row, more));
      reopen(state, run, row, false, Task.PENDING, effects);
      growMemory(run, group, row, more);
      effects.ready(run, row, 1);
      continue;
    }
    page.fails[slot]! += 1;
    if (page.fails[slot]! <= retriesOf(group, row)) {
      run.retries += 1;
      reopen(state, run, row, false, Task.PENDING, effects);
      setLaterShape(run, group, row);
      if (group.spec.retryDelay > 0) {
        touch(run.table, row).finished[slot] = at; // when the delay began: the queues need it after a restart
        effects.delayed(run, row, at + group.spec.retryDelay * 1000);
      } else effects.ready(run, row, 1);
      continue;
    }
    endTask(state, run, group, row, Task.FAILED, at, effects, moved);
  }
  settle();
  if (any) enforceMaxFails(state, run, at, effects);
};

export const enforceMaxFails = (state: State, run: Run, at: number, effects: Effects): void => {
  const { maxFails } = run.spec;
  if (maxFails === undefined || run.canceled !== "" || isFinishedRun(run) || run.counts[Task.FAILED]! <= maxFails)
    return;
  cancelAll(state, run, `more than ${maxFails} task${maxFails === 1 ? "" : "s"} failed (max-fails)`, at, effects);
};

/** Cancels every task of a run that has not ended. */
export const cancelAll = (state: State, run: Run, reason: string, at: number, effects: Effects): void => {
  run.canceled = reason;
  const moved = newMoved();
  for (const group of run.groups)
    cancelRows(state, run, group, group.first, group.first + group.count, reason, 0, at, effects, moved);
  cascade(state, run, moved, at, effects);
};

export const applyEnded: Apply<TasksEnded> = (state, event, effects) => {
  const agent = state.agents.get(event.agent);
  if (agent === undefined || event.seq <= agent.seq) return;
  agent.seq = event.seq;
  const verdict = verdictOf(event.givenUp);
  for (const columns of event.parts) {
    const run = state.runs.get(columns.run);
    if (run === undefined) continue;
    const decided = { verdict, grown: grownOf(event.grown, run) };
    applyColumns(state, event.agent, run, columns, decided, event.at, effects);
  }
};

/** A run begins with the earliest start of any attempt, in whatever order the starts are reported. */
const noteStart = (run: Run, at: number): void => {
  if (at > 0 && (run.started === 0 || at < run.started)) run.started = at;
};

/** Counts a loss, plus `earlier` ones. False when the task was given up: then the reason says so, and it must fail. */
const reopenLost = (state: State, run: Run, row: Row, verdict: Verdict, effects: Effects, earlier = 0): boolean => {
  const page = touch(run.table, row);
  const slot = row % run.table.pageRows;
  run.losses += 1;
  const counted = page.losses[slot]! + 1;
  page.losses[slot] = Math.min(counted, MOST_LOSSES);
  const losses = counted + earlier;
  const decided = verdict(run.id, row);
  if (decided === undefined) state.undecided += 1;
  if (decided ?? losses > state.lossLimit) {
    const last = run.reasons[page.reason[slot]!] ?? "";
    page.reason[slot] = internReason(run, `lost ${losses} times, the last time: ${last}`);
    return false;
  }
  const ahead = isAhead(page, slot);
  reopen(state, run, row, true, ahead ? Task.NEW : Task.PENDING, effects);
  if (!ahead) effects.ready(run, row, 1);
  return true;
};

export const applyLost: Apply<AgentsLost> = (state, event, effects) => {
  const gone = new Set(event.agents);
  const verdict = verdictOf(event.givenUp);
  for (const id of gone) {
    const agent = state.agents.get(id);
    if (agent === undefined || agent.ended > 0) continue;
    agent.ended = event.at;
    agent.reason = event.reason;
  }
  // a gang without one of its members is lost as a whole, its head's part too
  const crippled = new Map<Run, number[]>();
  for (const gang of gangsWithout(state, gone)) {
    const run = state.runs.get(gang.run);
    if (run === undefined || gone.has(gang.agents[0]!)) continue;
    crippled.set(run, [...(crippled.get(run) ?? []), gang.row]);
  }
  for (const { run: id, rows, at, outAt } of event.started ?? []) {
    const run = state.runs.get(id);
    if (run === undefined) continue;
    for (const [i, row] of rows.entries()) {
      const page = peek(run.table, row);
      const slot = row % run.table.pageRows;
      const began = at[i];
      if (page === undefined || began === undefined || isFinalTask(page.state[slot]!)) continue;
      if (!gone.has(page.agent[slot]!) && crippled.get(run)?.includes(row) !== true) continue;
      page.started[slot] = began;
      setOutput(page, slot, outAt?.[i] ?? page.outAt[slot]!, page.outBytes[slot], page.errBytes[slot]);
      noteStart(run, began);
    }
  }
  const where = whereOf(state, gone);
  for (const run of state.runs.values()) {
    if (isFinishedRun(run)) continue;
    const moved = newMoved();
    const lose = (row: Row, page: Page, slot: number): void =>
      loseRow(state, run, row, page, slot, event, verdict, effects, moved);
    forEachAt(run, gone, lose, where);
    for (const row of crippled.get(run) ?? []) lose(row, touch(run.table, row), row % run.table.pageRows);
    if (!hasMoved(moved)) continue;
    cascade(state, run, moved, event.at, effects);
    enforceMaxFails(state, run, event.at, effects);
  }
};

/** One task lost with its agent: runs again, or fails if lost too often. */
const loseRow = (
  state: State,
  run: Run,
  row: Row,
  page: Page,
  slot: number,
  { at, reason }: AgentsLost,
  verdict: Verdict,
  effects: Effects,
  moved: Moved,
): void => {
  const group = groupOf(run.groups, row);
  if (!isAhead(page, slot)) leave(state, run, row, page.agent[slot]!, effects);
  noteOver(state, run, group, row);
  page.finished[slot] = at;
  if ((page.flags[slot]! & Flag.CANCEL) !== 0) {
    endTask(state, run, group, row, Task.CANCELED, at, effects, moved);
    return;
  }
  page.reason[slot] = internReason(run, reason);
  if (reopenLost(state, run, row, verdict, effects)) return;
  endTask(state, run, group, row, Task.FAILED, at, effects, moved);
};

/** Whether this agent has this attempt of a task and the attempt has not ended. */
export const hasAttempt = (state: State, agent: AgentId, id: number, row: Row, attempt: number): boolean => {
  const table = state.runs.get(id)?.table;
  const page = table === undefined || row >= table.total ? undefined : peek(table, row);
  if (table === undefined || page === undefined) return false;
  const slot = row % table.pageRows;
  return page.attempt[slot] === attempt && holds(page, slot, agent);
};

/** The agent that has this attempt reports that it runs. Not journaled: its result, or its loss, says it too. */
export const markStarted = (state: State, id: number, row: Row, at: number): void => {
  const run = state.runs.get(id)!;
  const page = touch(run.table, row);
  const slot = row % run.table.pageRows;
  if (page.state[slot]! >= Task.EXECUTING) return;
  page.started[slot] = at;
  noteStart(run, at);
  advance(state, run, row, Task.EXECUTING);
};
