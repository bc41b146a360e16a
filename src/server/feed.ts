import type { Event } from "../core/events.ts";
import { type Attempt, type Run, indexOfRow } from "../core/run.ts";
import { taskStateName } from "../core/states.ts";
import { peek } from "../core/table.ts";
import type { EventView } from "../api/schemas.ts";
import type { Clock } from "./clock.ts";
import { isoTime, signalName } from "./views.ts";

/**
 * Events for people and scripts. The last ones stay in memory, in a ring; whoever follows has a bounded buffer, and a
 * reader that is too slow is dropped with the number to resume from (rule 11). Failures and losses are always told; tasks
 * that go well only while someone follows: at 100,000 tasks a second nobody reads them all.
 */

const REMEMBERED = 10_000;
const MOST_BEHIND = 20_000;

export interface Follower {
  readonly run: number | undefined;
  push(event: EventView): void;
}

export interface Feed {
  publish(event: Omit<EventView, "seq" | "time">, at: number): void;
  committed(event: Event): void;
  /** The time is asked for only where somebody wants to know: most tasks end unwatched. */
  taskEnded(run: Run, row: number, clock: Clock): void;
  /** An attempt failed or was lost, and its task goes on. The last attempt is told with its task's end. */
  attemptOver(run: Run, row: number, attempt: Attempt, clock: Clock): void;
  since(seq: number, run: number | undefined): EventView[];
  /** Events as they come; ends with `{resume}` when the reader is too slow. */
  follow(run: number | undefined, signal: AbortSignal): AsyncGenerator<EventView | { resume: number }>;
  readonly seq: number;
}

export const createFeed = (): Feed => {
  const ring: EventView[] = [];
  let seq = 0;
  let first = 0;
  const followers = new Set<Follower>();

  const publish = (event: Omit<EventView, "seq" | "time">, at: number, keep = true): void => {
    seq += 1;
    const made: EventView = { seq, time: isoTime(at) ?? new Date(0).toISOString(), ...event };
    if (keep) {
      ring.push(made);
      if (ring.length - first > REMEMBERED) {
        first += 1;
        if (first > REMEMBERED) {
          ring.splice(0, first);
          first = 0;
        }
      }
    }
    for (const follower of followers) if (follower.run === undefined || follower.run === event.run) follower.push(made);
  };

  const countOf = (parts: readonly { ranges: readonly number[] }[]): number =>
    parts.reduce((sum, { ranges }) => sum + ranges.reduce((n, value, i) => (i % 2 === 1 ? n + value : n), 0), 0);

  return {
    publish,
    committed: (event) => {
      switch (event.type) {
        case "run.committed":
          return publish({ event: "run.submitted", run: event.run }, event.at);
        case "run.canceled":
          return publish({ event: "run.cancel", run: event.run, detail: { reason: event.reason } }, event.at);
        case "run.retried":
          return publish({ event: "run.retry", run: event.run, detail: { which: event.which } }, event.at);
        case "tasks.assigned":
          if (followers.size === 0) return;
          for (const part of event.parts)
            publish(
              { event: "tasks.assigned", run: part.run, detail: { agent: event.agent, tasks: countOf([part]) } },
              event.at,
              false,
            );
          return;
        case "tasks.failed":
          for (const part of event.parts)
            publish(
              { event: "tasks.failed", run: part.run, detail: { tasks: countOf([part]), reason: event.reason } },
              event.at,
            );
          return;
        case "agent.joined":
          return publish(
            { event: "agent.joined", detail: { agent: event.agent, host: event.host, pilot: event.pilot } },
            event.at,
          );
        case "agents.lost":
          return publish(
            {
              event: event.orderly === true ? "agent.left" : "agent.lost",
              detail: { agents: event.agents, reason: event.reason },
            },
            event.at,
          );
        case "pilot.requested":
          return publish(
            { event: "pilot.requested", detail: { pilot: event.pilot, cluster: event.cluster, queue: event.queue } },
            event.at,
          );
        case "pilot.changed":
          return publish(
            { event: "pilot.state", detail: { pilot: event.pilot, state: event.state, reason: event.reason ?? null } },
            event.at,
          );
        case "launch.requested":
          return publish(
            { event: "launch.requested", detail: { launch: event.launch, cluster: event.cluster, user: event.user } },
            event.at,
          );
        case "launch.changed":
          if (event.state === undefined) return;
          return publish(
            {
              event: "launch.state",
              detail: { launch: event.launch, state: event.state, reason: event.reason ?? null },
            },
            event.at,
          );
        case "server.started":
          return publish(
            { event: "server.started", detail: { epoch: event.epoch, host: event.host, pid: event.pid } },
            event.at,
          );
        default:
      }
    },
    taskEnded: (run, row, clock) => {
      const page = peek(run.table, row);
      if (page === undefined) return;
      const slot = row % run.table.pageRows;
      const state = taskStateName(page.state[slot]!);
      // failures are remembered, successes only told to those who listen
      if (state === "DONE" && followers.size === 0) return;
      publish(
        {
          event: "task.ended",
          run: run.id,
          task: `${run.id}.${indexOfRow(run, row)}`,
          detail: { state, attempt: page.attempt[slot], reason: run.reasons[page.reason[slot]!] || null },
        },
        clock(),
        state !== "DONE",
      );
    },
    attemptOver: (run, row, { n, lost, exit, signal, reason, agent }, clock) =>
      publish(
        {
          event: lost ? "attempt.lost" : "attempt.failed",
          run: run.id,
          task: `${run.id}.${indexOfRow(run, row)}`,
          detail: {
            attempt: n,
            agent: String(agent),
            exitCode: exit < 0 ? null : exit,
            signal: signalName(signal),
            reason: reason || null,
          },
        },
        clock(),
      ),
    since: (from, run) =>
      ring.slice(first).filter((event) => event.seq > from && (run === undefined || event.run === run)),
    async *follow(run, signal) {
      const waiting: EventView[] = [];
      let wake: () => void = () => undefined;
      let resume: number | undefined;
      const follower: Follower = {
        run,
        push: (event) => {
          if (waiting.length >= MOST_BEHIND) resume ??= waiting[0]!.seq - 1;
          else waiting.push(event);
          wake();
        },
      };
      followers.add(follower);
      signal.addEventListener("abort", () => wake(), { once: true });
      try {
        while (!signal.aborted) {
          if (resume !== undefined) {
            yield { resume };
            return;
          }
          const batch = waiting.splice(0);
          for (const event of batch) yield event;
          if (waiting.length === 0 && !signal.aborted)
            await new Promise<void>((resolve) => {
              wake = resolve;
              if (waiting.length > 0) resolve();
            });
        }
      } finally {
        followers.delete(follower);
      }
    },
    get seq() {
      return seq;
    },
  };
};
