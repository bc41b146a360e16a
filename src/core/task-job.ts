import type { TaskJobChanged, TaskJobRequested } from "./events.ts";
import type { AgentId, Row, RunId, TaskJobId } from "./ids.ts";
import { type Run, isFinishedRun } from "./run.ts";
import type { Agent, Apply, Effects, State } from "./state.ts";
import { isReady, peek } from "./table.ts";

/**
 * Tasks that are jobs of their own. A submission carries one task, or an array of tasks of one group with equal shape;
 * each is an element:
 *
 *     requested ──► queued ──► spent ──► ended
 *         │           │                    ▲
 *         └───────────┴────────────────────┘
 *
 *   requested   the intent is on disk; the manager may or may not have the job
 *   queued      the manager has it and it has not begun, as far as we know
 *   spent       its agent came and was given the task (`tasks.assigned`): whatever becomes of that attempt, this job
 *               carries no other one
 *   ended       the manager is done with it
 *
 * A waiting task is carried by an element that is requested or queued. When that ends, the task is ready again.
 */
export type ElementState = "requested" | "queued" | "spent" | "ended";

export interface TaskElement {
  readonly row: Row;
  state: ElementState;
  /** The manager's own, once known. */
  nativeId: string;
  reason: string;
  /** The one that was given its task; 0: none was. */
  agent: AgentId;
  /** Its job is to leave the manager: its task waits for another one, or for none. */
  takenBack?: true;
}

export interface TaskJob {
  readonly id: TaskJobId;
  readonly cluster: string;
  readonly queue: string;
  readonly jobName: string;
  readonly run: RunId;
  readonly requested: number;
  /** The manager's id for all of it; empty until it answered. */
  nativeId: string;
  readonly elements: readonly TaskElement[];
}

const ORDER: readonly ElementState[] = ["requested", "queued", "spent", "ended"];

/** Whether a task whose job this is waits for that job, and for no other. */
export const carries = ({ state }: Pick<TaskElement, "state">): boolean => state === "requested" || state === "queued";

export const isOver = ({ elements }: TaskJob): boolean => elements.every(({ state }) => state === "ended");

/** The job and the element that carry a task, or undefined. */
export const carrierOf = (state: State, run: RunId, row: Row): { job: TaskJob; element: number } | undefined => {
  const job = state.taskJobs.get(state.carried.get(run)?.get(row) ?? 0);
  const element = job?.elements.findIndex((each) => each.row === row && carries(each)) ?? -1;
  return job === undefined || element < 0 ? undefined : { job, element };
};

/** The rows from `from` on that no job carries, in stretches. */
export function* uncarried(
  { carried }: Pick<State, "carried">,
  run: RunId,
  from: Row,
  count: number,
): Generator<{ readonly from: Row; readonly count: number }> {
  const mine = carried.get(run);
  if (mine === undefined) return yield { from, count };
  let next = from;
  for (let row = from; row < from + count; row += 1) {
    if (!mine.has(row)) continue;
    if (row > next) yield { from: next, count: row - next };
    next = row + 1;
  }
  if (from + count > next) yield { from: next, count: from + count - next };
}

/** Whether no agent has a row and nothing keeps it from being placed. */
export const waits = (run: Run, row: Row): boolean => {
  if (row >= run.total) return false;
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  return page === undefined ? isReady(run.table.baseState(row), 0) : isReady(page.state[slot]!, page.agent[slot]!);
};

const carry = ({ carried }: State, run: RunId, row: Row, job: TaskJobId): void => {
  let mine = carried.get(run);
  if (mine === undefined) carried.set(run, (mine = new Map()));
  mine.set(row, job);
};

const uncarry = ({ carried }: State, { id, run }: TaskJob, row: Row): void => {
  const mine = carried.get(run);
  if (mine?.get(row) !== id) return;
  mine.delete(row);
  if (mine.size === 0) carried.delete(run);
};

/** False if that would be no step forward. */
const advanceElement = (state: State, job: TaskJob, element: TaskElement, to: ElementState): boolean => {
  if (ORDER.indexOf(to) <= ORDER.indexOf(element.state)) return false;
  const carried = carries(element);
  element.state = to;
  if (carried && !carries(element)) uncarry(state, job, element.row);
  return true;
};

/** As it is kept in a snapshot, or was just requested. */
export const addTaskJob = (state: State, job: TaskJob): void => {
  state.nextTaskJob = Math.max(state.nextTaskJob, job.id + 1);
  state.taskJobs.set(job.id, job);
  for (const element of job.elements) if (carries(element)) carry(state, job.run, element.row, job.id);
};

export const applyTaskJobRequested: Apply<TaskJobRequested> = (state, event) => {
  const { job: id, cluster, queue, jobName, run, rows, at } = event;
  const elements = rows.map((row): TaskElement => ({ row, state: "requested", nativeId: "", reason: "", agent: 0 }));
  addTaskJob(state, { id, cluster, queue, jobName, run, requested: at, nativeId: "", elements });
};

export const applyTaskJobChanged: Apply<TaskJobChanged> = (state, event, effects) => {
  const job = state.taskJobs.get(event.job);
  if (job === undefined) return;
  if (event.nativeId !== undefined) job.nativeId = event.nativeId;
  const { nativeId, nativeIds, reason, state: to } = event;
  if (nativeIds !== undefined)
    for (const [i, element] of job.elements.entries()) element.nativeId = nativeIds[i] ?? element.nativeId;
  else if (nativeId !== undefined && job.elements.length === 1) job.elements[0]!.nativeId = nativeId;
  const concerned = event.elements?.map((i) => job.elements[i]) ?? job.elements;
  const free: Row[] = [];
  for (const element of concerned) {
    if (element === undefined) continue;
    if (reason !== undefined) element.reason = reason;
    if (event.takenBack === true) element.takenBack = true;
    const carried = carries(element);
    if (to === undefined || !advanceElement(state, job, element, to)) continue;
    if (carried && to === "ended") free.push(element.row);
  }
  putBack(state, job, free, effects);
};

/** Tasks whose job is over before it began may be placed again. */
const putBack = ({ runs }: State, { run: id }: TaskJob, rows: readonly Row[], effects: Effects): void => {
  const run = runs.get(id);
  if (run === undefined || isFinishedRun(run)) return;
  for (const row of rows) if (waits(run, row)) effects.ready(run, row, 1);
};

/** An agent is given its task: the job that it runs in carries no other. */
export const spend = (state: State, id: AgentId): void => {
  const of = state.agents.get(id)?.taskJob;
  if (of === undefined) return;
  const job = state.taskJobs.get(of.id);
  const element = job?.elements[of.element];
  if (job === undefined || element === undefined) return;
  if (advanceElement(state, job, element, "spent") || element.state === "spent") element.agent = id;
};

/** Why such a job must not be asked for, or undefined. */
export const taskJobProblem = (state: State, { run: id, rows }: TaskJobRequested): string | undefined => {
  const run = state.runs.get(id);
  if (run === undefined) return `run ${id} is not there`;
  const mine = state.carried.get(id);
  const seen = new Set<Row>();
  for (const row of rows) {
    if (!waits(run, row)) return `rows: ${row} does not wait`;
    if (mine?.has(row) === true || seen.has(row)) return `rows: ${row} has a job`;
    seen.add(row);
  }
  return rows.length === 0 ? "rows is empty" : undefined;
};

/**
 * Jobs that are over, and the agents that ran in them, leave the state with the details of their run: there is one for
 * each attempt. `gone`: whether a run's details are on disk.
 */
export const isForgotten = (job: TaskJob, gone: (run: RunId) => boolean): boolean => gone(job.run) && isOver(job);

export const isForgottenAgent = (state: State, { taskJob, ended }: Agent, gone: (run: RunId) => boolean): boolean => {
  if (taskJob === undefined || ended === 0) return false;
  const job = state.taskJobs.get(taskJob.id);
  return job === undefined || gone(job.run);
};

/** Drops what the last snapshot has dropped. */
export const forgetTaskJobs = (state: State): void => {
  const gone = (run: RunId): boolean => !state.runs.has(run);
  for (const agent of state.agents.values()) {
    if (!isForgottenAgent(state, agent, gone)) continue;
    state.agents.delete(agent.id);
    if (state.agentByUuid.get(agent.uuid) === agent.id) state.agentByUuid.delete(agent.uuid);
  }
  for (const job of state.taskJobs.values()) if (isForgotten(job, gone)) state.taskJobs.delete(job.id);
};

/** The agents that ran attempts of a run in jobs of their own. */
export const agentsOfRun = ({ agents, taskJobs }: State, run: RunId): Agent[] =>
  [...agents.values()].filter(({ taskJob }) => taskJob !== undefined && taskJobs.get(taskJob.id)?.run === run);

/** An agent that had an attempt of this run. */
export const agentOf = ({ agents }: State, run: Run, id: AgentId): Agent | undefined =>
  agents.get(id) ?? run.agents.get(id);
