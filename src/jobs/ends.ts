import { holds } from "../core/held.ts";
import { peek } from "../core/table.ts";
import { type TaskJob, carries } from "../core/task-job.ts";
import type { JobStatus } from "../managers/provider.ts";
import { waitingOf } from "../managers/waiting-words.ts";
import { endingText } from "../pilots/ending.ts";
import { lastLine, readOutput } from "../pilots/pilot-output.ts";
import { type Changes, directoryOf, isWanted } from "./changes.ts";
import type { JobsContext } from "./context.ts";
import type { JobNotes } from "./notes.ts";
import { createOpenAttempts } from "./open-attempts.ts";
import { type Living, keyOf } from "./roster.ts";
import type { TaskQueue } from "./task-queue.ts";

/**
 * What the manager's answer about the job of a task means:
 *
 *   queued, held   it waits. If its task was given to an agent before, the manager has requeued it: that agent is lost,
 *                  and the job is cancelled, since its task has moved on
 *   unstartable    held because it could not be started: it is cancelled, and counts as ended
 *   active         it has begun, and no longer counts as waiting
 *   ended          before an agent came: its task is ready again if it was taken back, else the attempt that never
 *                  began is lost. After that: what its agent wrote on its way out counts first; then out of memory and
 *                  over time are what they say, and anything else is a loss
 *   unknown        nothing is concluded
 */
export interface JobEnds {
  heard(queue: TaskQueue | undefined, living: Living, status: JobStatus, askedAt: number): Promise<void>;
}

export interface JobEndsOptions {
  readonly notes: JobNotes;
  readonly changes: Changes;
  /** It ended before its agent came, though nobody wanted that. */
  readonly neverBegan: (job: TaskJob, element: number, reason: string) => void;
}

export const createJobEnds = (context: JobsContext, { notes, changes, neverBegan }: JobEndsOptions): JobEnds => {
  const { engine, agents, spools, log } = context;
  const { state } = engine;

  const open = createOpenAttempts(context);
  const isConnected = (id: number): boolean => agents.link(id)?.channel !== undefined;

  const endUnbegun = async (
    queue: TaskQueue | undefined,
    { job, i, element }: Living,
    status: JobStatus,
  ): Promise<void> => {
    const key = keyOf(job, i);
    const said = lastLine(await readOutput(directoryOf(context, queue, job), queue?.outputs ?? []));
    // its agent may have come while we read
    if (!carries(element)) return;
    const text = endingText(notes.unstartable.get(key) ?? status);
    if (element.takenBack === true || !isWanted(state, job, i)) return changes.end(job, [i], text);
    const more = said === "" || text.includes(said) ? "" : `; it said: ${said}`;
    const reason = `its job ended before its agent connected${text === "" ? "" : `: ${text}`}${more}`;
    log(`${job.jobName}: ${reason}`);
    neverBegan(job, i, reason);
    open.loseUnbegun(job, i, reason);
    changes.end(job, [i], reason);
  };

  const endSpent = async ({ job, i, element }: Living, status: JobStatus): Promise<void> => {
    // a job that the manager has forgotten need not have ended; and what it still has to say comes first
    if (isConnected(element.agent)) return;
    await spools.importAll();
    const agent = state.agents.get(element.agent);
    if (isConnected(element.agent)) return;
    const text = endingText(status);
    if (agent !== undefined && agent.ended === 0) {
      const run = state.runs.get(job.run);
      const page = run === undefined ? undefined : peek(run.table, element.row);
      if (run !== undefined && page !== undefined && holds(page, element.row % run.table.pageRows, agent.id))
        open.end(agent, run, element.row, status, text);
      agents.lose([agent.id], text === "" ? "its job ended" : text);
    }
    changes.end(job, [i], status.outcome === "done" ? "" : text);
  };

  const waitsInManager = (
    queue: TaskQueue | undefined,
    { job, i, element }: Living,
    status: JobStatus,
    askedAt: number,
  ): void => {
    const key = keyOf(job, i);
    const waiting = waitingOf(queue?.manager, status);
    if (notes.said.get(key)?.text !== waiting.text) {
      notes.said.set(key, waiting);
      context.onWaiting(job.id, i, waiting.text);
    }
    if (status.state === "suspended") return;
    notes.begun.delete(key);
    if (element.state !== "spent") return;
    const link = agents.link(element.agent);
    if (link !== undefined && (link.suspectSince ?? Infinity) >= askedAt) return;
    if (link !== undefined) agents.lose([link.id], `its job was put back into the queue: ${waiting.text}`);
    changes.takeBack(job, [i]);
  };

  return {
    heard: async (queue, living, status, askedAt) => {
      const { job, i, element } = living;
      const key = keyOf(job, i);
      if (status.stuck === true) notes.unstartable.set(key, status);
      else if (status.state === "queued" || status.state === "active") notes.unstartable.delete(key);
      switch (status.state) {
        case "ended":
          if (element.state === "spent") return endSpent(living, status);
          return endUnbegun(queue, living, status);
        case "active":
          notes.said.delete(key);
          notes.begun.add(key);
          return;
        case "queued":
        case "held":
        case "suspended":
          return waitsInManager(queue, living, status, askedAt);
        case "unknown":
          notes.said.set(key, waitingOf(queue?.manager, status));
      }
    },
  };
};
