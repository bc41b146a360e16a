import type { AgentId, Row } from "../core/ids.ts";
import { type Resources, amountOf } from "../core/resources.ts";
import { type Run, type Shape, groupOf, shapeOfRow } from "../core/run.ts";
import type { Agent } from "../core/state.ts";
import { type TaskJob, carrierOf, carries, waits } from "../core/task-job.ts";
import { holds } from "../core/held.ts";
import { peek } from "../core/table.ts";
import type { JobsContext } from "./context.ts";

/**
 * The agent of a task's job has come. It gets its task if that still waits for this job; else it is told to end. One
 * that was given its task but never heard of it gets it again: the place in the manager's queue was hard to come by.
 */
export interface Joining {
  joined(agent: AgentId): void;
  /** Those that came while nothing could be placed. */
  again(): void;
}

export interface JoiningOptions {
  /** Its job has begun; called before the task is given to its agent. */
  readonly begun: (job: TaskJob, element: number) => void;
  /** Its job cannot run what the task asks for by now. */
  readonly outgrown: (job: TaskJob, element: number) => void;
}

/** What a task asks for may have grown since its job was requested; with ranks, only the job as a whole could tell. */
const hasRoom = (resources: Resources, shape: Shape): boolean =>
  shape.ranks !== undefined ||
  Object.keys(shape.resources).every(
    (name) => !Object.hasOwn(resources, name) || amountOf(resources, name) >= shape.resources[name]!,
  );

const has = (run: Run, row: Row, agent: AgentId): boolean => {
  const page = peek(run.table, row);
  return page !== undefined && holds(page, row % run.table.pageRows, agent);
};

export const createJoining = ({ engine, agents, log }: JobsContext, options: JoiningOptions): Joining => {
  const { state } = engine;
  const early = new Set<AgentId>();

  const assign = ({ id }: Agent, run: Run, row: Row, shape: Shape): void => {
    const parts = [{ run: run.id, ranges: [row, 1] }];
    const gang = shape.ranks === undefined ? {} : { gang: { agents: [id], ranks: [shape.ranks.count] } };
    const lsn = engine.commit({ type: "tasks.assigned", at: engine.clock(), agent: id, parts, ...gang });
    engine.afterDurable(() => engine.listeners.assigned(id, parts, []), lsn);
  };

  /** Why it has nothing to do here, or undefined. */
  const meet = (agent: Agent): string | undefined => {
    const { id: jobId, element: i } = agent.taskJob!;
    const job = state.taskJobs.get(jobId);
    const element = job?.elements[i];
    if (job === undefined || element === undefined || element.state === "ended") return "its job was given up";
    const run = state.runs.get(job.run);
    if (run === undefined) return "its run is over";
    if (has(run, element.row, agent.id)) return undefined;
    if (element.takenBack === true) return "its job was taken back";
    if (!waits(run, element.row)) return "its task waits no longer";
    if (element.state === "spent" && element.agent !== agent.id) return "its task was given to another agent";
    const carrier = carrierOf(state, run.id, element.row);
    if (!carries(element) && carrier !== undefined) return "its task has another job";
    if (!engine.listeners.mayPlace()) {
      early.add(agent.id);
      return undefined;
    }
    const shape = shapeOfRow(groupOf(run.groups, element.row), element.row);
    if (!hasRoom(agent.resources, shape)) {
      options.outgrown(job, i);
      return "its task asks for more by now";
    }
    options.begun(job, i);
    assign(agent, run, element.row, shape);
    return undefined;
  };

  const joined = (id: AgentId): void => {
    const agent = state.agents.get(id);
    if (agent?.taskJob === undefined || agent.ended > 0) return;
    const no = meet(agent);
    if (no === undefined) return;
    log(`agent ${id} has nothing to do: ${no}`);
    agents.drain(id, true, no);
  };

  return {
    joined,
    again: () => {
      const all = [...early];
      early.clear();
      for (const id of all) if (agents.link(id)?.channel !== undefined) joined(id);
    },
  };
};
