import { randomUUID } from "node:crypto";
import { Ending, NO_CODE, type ResultColumns } from "../core/events.ts";
import type { Row } from "../core/ids.ts";
import type { Run } from "../core/run.ts";
import type { Agent } from "../core/state.ts";
import { peek } from "../core/table.ts";
import type { TaskJob } from "../core/task-job.ts";
import type { JobStatus } from "../managers/provider.ts";
import { VERSION } from "../protocol/package-version.ts";
import type { JobsContext } from "./context.ts";

/** Attempts about whose end no agent will say anything: the manager's word about their job is all there is. */
export interface OpenAttempts {
  /** Its agent never came. */
  loseUnbegun(job: TaskJob, element: number, reason: string): void;
  /** Its agent is gone; `text` is what the manager said. */
  end(agent: Agent, run: Run, row: Row, status: JobStatus, text: string): void;
}

export const createOpenAttempts = ({ engine, agents }: Pick<JobsContext, "engine" | "agents">): OpenAttempts => {
  const { state } = engine;

  /** An attempt without an agent: its loss is kept and counted like any other. */
  const loseUnbegun = (job: TaskJob, i: number, reason: string): void => {
    const agent = state.nextAgent;
    const at = engine.clock();
    const row = job.elements[i]!.row;
    engine.commit({
      type: "agent.joined",
      at,
      agent,
      uuid: randomUUID(),
      pilot: 0,
      cluster: job.cluster,
      queue: job.queue,
      taskJob: { id: job.id, element: i },
      host: "",
      version: VERSION,
      resources: {},
      output: "",
      seq: 0,
    });
    engine.commit({ type: "tasks.assigned", at, agent, parts: [{ run: job.run, ranges: [row, 1] }] });
    engine.commit({ type: "agents.lost", at, agents: [agent], reason });
  };

  /** The open attempt of an agent that is gone, as a result: what it said itself, or what is known without it. */
  const columnsOf = (agent: Agent, run: Run, row: Row): ResultColumns => {
    const own = agents.cutShort(agent.id);
    if (own !== undefined) return own;
    const page = peek(run.table, row)!;
    const slot = row % run.table.pageRows;
    return {
      run: run.id,
      rows: Uint32Array.of(row),
      attempt: page.attempt[slot]!,
      ending: Ending.CUT_OFF,
      code: NO_CODE,
      started: page.started[slot]!,
      finished: engine.clock(),
      outAt: agents.link(agent.id)?.tails.get(`${run.id}.${row}`) ?? -1,
      outBytes: 0,
      errBytes: 0,
      details: [],
    };
  };

  /** The agent is gone, and its attempt is open: the manager has the last word about it. */
  const end = (agent: Agent, run: Run, row: Row, { outcome }: JobStatus, text: string): void => {
    const own = agents.cutShort(agent.id);
    const ending =
      outcome === "out-of-memory" ? Ending.MEMORY : outcome === "timeout" ? Ending.TIME_LIMIT : Ending.CUT_OFF;
    // without anything of its own, its loss is that of its agent
    if (own === undefined && ending === Ending.CUT_OFF) return;
    const details: [number, string][] = ending === Ending.MEMORY ? [] : [[0, text === "" ? "its job ended" : text]];
    engine.commit({
      type: "tasks.ended",
      at: engine.clock(),
      agent: agent.id,
      seq: agent.seq + 1,
      parts: [{ ...columnsOf(agent, run, row), ending, details }],
    });
  };

  return { loseUnbegun, end };
};
