import type { Event } from "../core/events.ts";
import type { Attempt, Run } from "../core/run.ts";
import type { EventView } from "../api/schemas.ts";
import type { Clock } from "./clock.ts";
import { endOf, lineOfAttempt, lineOfEnd, linesOf, type FeedLine, type RunOf } from "./feed-lines.ts";
import { isoTime } from "../views/views.ts";
import type { Row, RunId } from "../core/ids.ts";

/**
 * Events for people and scripts, told when they are on disk: what a crash may undo was never told. The last ones stay in memory, in a ring; each follower has a bounded buffer, and a
 * reader that is too slow is dropped with the number to resume from (rule 11). Failures and losses are always
 * published; successes only while someone follows: at 100,000 tasks a second nobody reads them all.
 */

const REMEMBERED = 10_000;
const MOST_BEHIND = 20_000;

export interface Follower {
  readonly run: RunId | undefined;
  push(event: EventView): void;
}

export interface Feed {
  /** At once: for what is not in the journal. */
  publish(event: FeedLine, at: number): void;
  /** Like the rest below, told when what was appended so far is on disk. */
  publishKept(event: FeedLine, at: number): void;
  /** How to wait for the disk. Until it is set, as during a replay, everything is there already. */
  whenKept(wait: (action: () => void) => void): void;
  committed(event: Event, runOf?: RunOf): void;
  /** The clock is read only if someone wants to know: most tasks end unwatched. */
  taskEnded(run: Run, row: Row, clock: Clock): void;
  /** An attempt failed or was lost, and its task will run again. The last attempt is published with its task's end. */
  attemptOver(run: Run, row: Row, attempt: Attempt, clock: Clock): void;
  since(seq: number, run: RunId | undefined): EventView[];
  /** Events as they come; ends with `{resume}` when the reader is too slow. */
  follow(run: RunId | undefined, signal: AbortSignal): AsyncGenerator<EventView | { resume: number }>;
  /** Of those that are remembered, the first `most` after a number: for many who look, without following. */
  remembered(after: number, most: number): readonly EventView[];
  /** The number of the last one that is not remembered any more; whoever has heard of it has missed nothing. */
  readonly forgotten: number;
  readonly seq: number;
}

export const createFeed = (): Feed => {
  const ring: EventView[] = [];
  let seq = 0;
  let first = 0;
  let forgotten = 0;
  const followers = new Set<Follower>();
  let afterDisk = (action: () => void): void => action();

  const publish = (event: FeedLine, at: number, keep = true): void => {
    seq += 1;
    const made: EventView = { seq, time: isoTime(at) ?? new Date(0).toISOString(), ...event };
    if (keep) {
      ring.push(made);
      if (ring.length - first > REMEMBERED) {
        forgotten = ring[first]!.seq;
        first += 1;
        if (first > REMEMBERED) {
          ring.splice(0, first);
          first = 0;
        }
      }
    }
    for (const follower of followers) if (follower.run === undefined || follower.run === event.run) follower.push(made);
  };

  const publishKept = (event: FeedLine, at: number, keep = true): void => afterDisk(() => publish(event, at, keep));

  return {
    publish,
    publishKept,
    whenKept: (wait) => {
      afterDisk = wait;
    },
    committed: (event, runOf) => {
      // there are many, and they matter only at the moment
      const passing = event.type === "tasks.assigned";
      if (passing && followers.size === 0) return;
      for (const line of linesOf(event, runOf)) publishKept(line, "at" in event ? event.at : 0, !passing);
    },
    taskEnded: (run, row, clock) => {
      const state = endOf(run, row);
      // failures are remembered, successes only sent to those who listen
      if (state === undefined || (state === "DONE" && followers.size === 0)) return;
      publishKept(lineOfEnd(run, row, state), clock(), state !== "DONE");
    },
    attemptOver: (run, row, attempt, clock) => publishKept(lineOfAttempt(run, row, attempt), clock()),
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
    remembered: (after, most) => {
      let low = first;
      let high = ring.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (ring[middle]!.seq <= after) low = middle + 1;
        else high = middle;
      }
      return ring.slice(low, low + most);
    },
    get forgotten() {
      return forgotten;
    },
    get seq() {
      return seq;
    },
  };
};
