/**
 * Terminology and state machines of Slipway (the words of docs/glossary.md).
 *
 * run      what a user submits: a named set of tasks          task     one unit of work: a command with resources
 * group    the tasks of one entry of a run's file             attempt  one execution of a task
 * pilot    a job that holds agents and pulls tasks            agent    the process on each node of a pilot
 *
 * Task, within one attempt, only ever moves to the right; states in which nothing happens are skipped:
 *
 *   NEW ─► TMGR_SCHEDULING_PENDING ─► TMGR_SCHEDULING ─► [staging in] ─► AGENT_SCHEDULING_PENDING ─► AGENT_SCHEDULING
 *        ─► AGENT_EXECUTING_PENDING ─► AGENT_EXECUTING ─► [staging out] ─► DONE | CANCELED | FAILED
 *
 * A new attempt starts again at TMGR_SCHEDULING_PENDING. Only `retry` reopens a final task: it waits for its
 * dependencies again, in NEW. A task that was handed ahead (held.ts) is in NEW until what it waits for is done, and goes
 * on to TMGR_SCHEDULING; lost before that, it waits in NEW for its next attempt. Who moves what is in moves.ts.
 *
 * Launch: pending ─► running ─► succeeded | failed | cancelled | lost
 *
 * It only ever moves to the right, as a pilot does; a final state stays.
 */

export const TASK_STATES = [
  "NEW",
  "TMGR_SCHEDULING_PENDING",
  "TMGR_SCHEDULING",
  "TMGR_STAGING_INPUT_PENDING",
  "TMGR_STAGING_INPUT",
  "AGENT_STAGING_INPUT_PENDING",
  "AGENT_STAGING_INPUT",
  "AGENT_SCHEDULING_PENDING",
  "AGENT_SCHEDULING",
  "AGENT_EXECUTING_PENDING",
  "AGENT_EXECUTING",
  "AGENT_STAGING_OUTPUT_PENDING",
  "AGENT_STAGING_OUTPUT",
  "TMGR_STAGING_OUTPUT_PENDING",
  "TMGR_STAGING_OUTPUT",
  "DONE",
  "CANCELED",
  "FAILED",
] as const;

export type TaskState = (typeof TASK_STATES)[number];

/** A task's state as stored in a table: its index in TASK_STATES. */
export const Task = {
  NEW: 0,
  PENDING: 1,
  SCHEDULING: 2,
  AGENT_PENDING: 7,
  EXECUTING: 10,
  DONE: 15,
  CANCELED: 16,
  FAILED: 17,
} as const;

export const PILOT_STATES = [
  "NEW",
  "PMGR_LAUNCHING_PENDING",
  "PMGR_LAUNCHING",
  "PMGR_ACTIVE_PENDING",
  "PMGR_ACTIVE",
  "DONE",
  "CANCELED",
  "FAILED",
] as const;

export type PilotState = (typeof PILOT_STATES)[number];

/** States below this one are not final. */
export const FIRST_FINAL_TASK = Task.DONE;

export const isFinalTask = (code: number): boolean => code >= FIRST_FINAL_TASK;

export const isFinalPilot = (state: PilotState): boolean => PILOT_STATES.indexOf(state) >= PILOT_STATES.indexOf("DONE");

export const taskStateName = (code: number): TaskState => TASK_STATES[code] ?? "NEW";

/** Whether a task may go from one state to another within an attempt: forward only, and never out of a final state. */
export const mayAdvanceTask = (from: number, to: number): boolean => to > from && !isFinalTask(from);

/**
 * Whether an attempt may be over and its task wait for the next one: in PENDING, or in NEW after `retry` and where what
 * it waits for is not done.
 */
export const mayReopenTask = (from: number, to: number): boolean =>
  to === Task.PENDING
    ? from >= Task.SCHEDULING && !isFinalTask(from)
    : to === Task.NEW && (from === Task.NEW || isFinalTask(from));

/** The same for a pilot: forward only. */
export const mayAdvancePilot = (from: PilotState, to: PilotState): boolean =>
  PILOT_STATES.indexOf(to) > PILOT_STATES.indexOf(from) && !isFinalPilot(from);

export const LAUNCH_STATES = ["pending", "running", "succeeded", "failed", "cancelled", "lost"] as const;

export type LaunchState = (typeof LAUNCH_STATES)[number];

export const isFinalLaunch = (state: LaunchState): boolean =>
  LAUNCH_STATES.indexOf(state) >= LAUNCH_STATES.indexOf("succeeded");

export const mayAdvanceLaunch = (from: LaunchState, to: LaunchState): boolean =>
  LAUNCH_STATES.indexOf(to) > LAUNCH_STATES.indexOf(from) && !isFinalLaunch(from);
