import type { EventView } from "../api/schemas.ts";
import type { Event, RowRanges, RunRetried } from "../core/events.ts";
import { setView } from "../views/retry-set.ts";
import { type Attempt, type Run, indexOfRow } from "../core/run.ts";
import { taskStateName } from "../core/states.ts";
import { peek } from "../core/table.ts";
import { signalName } from "../views/views.ts";
import type { AgentId, Row, RunId, TaskJobId } from "../core/ids.ts";

/** What people and scripts learn of what happens: an event of the journal as zero or more lines. */
export type FeedLine = Omit<EventView, "seq" | "time">;

export type RunOf = (job: TaskJobId) => RunId | undefined;

const runPart = (run: RunId | undefined): { run?: RunId } => (run === undefined ? {} : { run });

const NONE: readonly FeedLine[] = [];

const countOf = ({ ranges }: { readonly ranges: readonly number[] }): number =>
  ranges.reduce((sum, value, i) => (i % 2 === 1 ? sum + value : sum), 0);

const assignedLine = (agent: AgentId, part: RowRanges, ahead: boolean): FeedLine => ({
  event: "tasks.assigned",
  run: part.run,
  detail: { agent, tasks: countOf(part), ...(ahead ? { ahead } : {}) },
});

/** Chosen tasks are counted. */
const retryDetail = ({ which, rows, set }: RunRetried): Record<string, unknown> => ({
  ...(rows === undefined ? { which } : { tasks: countOf({ ranges: rows }) }),
  ...(set === undefined ? {} : { set: setView(set) }),
});

/** `runOf`: the run of a task's job. */
export const linesOf = (event: Event, runOf: RunOf = () => undefined): readonly FeedLine[] => {
  switch (event.type) {
    case "run.committed":
      return event.skipped === undefined
        ? [{ event: "run.submitted", run: event.run }]
        : [{ event: "run.submitted", run: event.run, detail: { skipped: countOf({ ranges: event.skipped }) } }];
    case "run.canceled":
      return [{ event: "run.cancel", run: event.run, detail: { reason: event.reason } }];
    case "run.retried":
      return [{ event: "run.retry", run: event.run, detail: retryDetail(event) }];
    case "tasks.assigned":
      return [
        ...event.parts.map((part) => assignedLine(event.agent, part, false)),
        ...(event.ahead ?? []).map((part) => assignedLine(event.agent, part, true)),
      ];
    case "tasks.failed":
      return event.parts.map((part) => ({
        event: "tasks.failed",
        run: part.run,
        detail: { tasks: countOf(part), reason: event.reason },
      }));
    case "tasks.skipped":
      return event.parts.map((part) => ({ event: "tasks.skipped", run: part.run, detail: { tasks: countOf(part) } }));
    case "agent.joined":
      return [
        {
          event: "agent.joined",
          detail: {
            agent: event.agent,
            host: event.host,
            ...(event.taskJob === undefined ? { pilot: event.pilot } : { job: event.taskJob.id }),
          },
        },
      ];
    case "agents.lost": {
      const name = event.orderly === true ? "agent.left" : "agent.lost";
      return [{ event: name, detail: { agents: event.agents, reason: event.reason } }];
    }
    case "pilot.requested":
      return [{ event: "pilot.requested", detail: { pilot: event.pilot, cluster: event.cluster, queue: event.queue } }];
    case "pilot.changed":
      return [
        { event: "pilot.state", detail: { pilot: event.pilot, state: event.state, reason: event.reason ?? null } },
      ];
    case "task-job.requested":
      return [
        {
          event: "task-job.requested",
          run: event.run,
          detail: {
            job: event.job,
            tasks: event.rows.length,
            cluster: event.cluster,
            queue: event.queue,
            name: event.jobName,
          },
        },
      ];
    case "task-job.changed":
      return [
        {
          event: "task-job.state",
          ...runPart(runOf(event.job)),
          detail: {
            job: event.job,
            state: event.state ?? (event.takenBack === true ? "taken-back" : null),
            nativeId: event.nativeId ?? null,
            elements: event.elements?.length ?? null,
            reason: event.reason ?? null,
          },
        },
      ];
    case "launch.requested":
      return [
        { event: "launch.requested", detail: { launch: event.launch, cluster: event.cluster, user: event.user } },
      ];
    case "launch.changed":
      if (event.state === undefined) return NONE;
      return [
        { event: "launch.state", detail: { launch: event.launch, state: event.state, reason: event.reason ?? null } },
      ];
    case "server.started":
      return [{ event: "server.started", detail: { epoch: event.epoch, host: event.host, pid: event.pid } }];
    default:
      return NONE;
  }
};

const nameOf = (run: Run, row: Row): string => `${run.id}.${indexOfRow(run, row)}`;

/** The name of a task's state; undefined where nothing is known about it. */
export const endOf = (run: Run, row: Row): string | undefined => {
  const page = peek(run.table, row);
  return page === undefined ? undefined : taskStateName(page.state[row % run.table.pageRows]!);
};

export const lineOfEnd = (run: Run, row: Row, state: string): FeedLine => {
  const page = peek(run.table, row)!;
  const slot = row % run.table.pageRows;
  return {
    event: "task.ended",
    run: run.id,
    task: nameOf(run, row),
    detail: { state, attempt: page.attempt[slot], reason: run.reasons[page.reason[slot]!] || null },
  };
};

export const lineOfAttempt = (run: Run, row: Row, attempt: Attempt): FeedLine => ({
  event: attempt.lost ? "attempt.lost" : "attempt.failed",
  run: run.id,
  task: nameOf(run, row),
  detail: {
    attempt: attempt.n,
    agent: String(attempt.agent),
    exitCode: attempt.exit < 0 ? null : attempt.exit,
    signal: signalName(attempt.signal),
    reason: attempt.reason || null,
  },
});
