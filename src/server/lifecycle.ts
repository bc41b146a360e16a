import { SlipwayError } from "../errors.ts";
import type { Log } from "./logger.ts";

/**
 * Whether this server takes work, and when it ends.
 *
 *   running ── stop ──► stopping ── stop now ──► stopping now ──► ended, status 0
 *      └── the home is lost, or the journal is broken ──► ended, status 3
 *
 * Independently, the journal's disk may be full for a while: until there is room, nothing is taken, changed or placed.
 */
export interface Lifecycle {
  readonly stopping: boolean;
  /** Its past is replayed and its doors are open. */
  started(): void;
  /** Why it should not be sent work now, or null; for anybody: without names and paths. */
  unready(): string | null;
  /** Why the journal cannot be written now, or null. */
  readonly full: string | null;
  setFull(reason: string | null): void;
  /** Why nothing is placed now, or null. */
  blocked(): string | null;
  /** Throws when nothing new may be taken now. */
  mayTake(): void;
  /** Throws when changes may not be made now. */
  mayChange(): void;
  /** A second call counts only with `now`. */
  stop(now: boolean): void;
  /** Called whenever stopping begins or becomes more urgent; at once, if it has already begun. */
  onStop(listener: (now: boolean) => void): void;
  end(status: number): void;
  /** Resolves with the exit status. */
  readonly ended: Promise<number>;
}

export const createLifecycle = (home: string, log: Log): Lifecycle => {
  let asked: { readonly now: boolean } | undefined;
  let full: string | null = null;
  let isStarted = false;
  let listener: ((now: boolean) => void) | undefined;
  let end: (status: number) => void = () => undefined;
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });

  const mayChange = (): void => {
    if (full !== null) throw new SlipwayError("journal-full", { detail: full, home });
  };

  const blocked = (): string | null => full ?? (asked === undefined ? null : "the server is stopping");

  return {
    get stopping() {
      return asked !== undefined;
    },
    get full() {
      return full;
    },
    setFull: (reason) => {
      full = reason;
    },
    started: () => {
      isStarted = true;
    },
    unready: () => (full !== null ? "its disk is full" : isStarted ? blocked() : "the server is starting"),
    blocked,
    mayTake: () => {
      if (asked !== undefined) throw new SlipwayError("stopping");
      mayChange();
    },
    mayChange,
    stop: (now) => {
      if (asked !== undefined && !now) return;
      asked = { now };
      log(now ? "stopping now" : "stopping");
      listener?.(now);
    },
    onStop: (told) => {
      listener = told;
      if (asked !== undefined) told(asked.now);
    },
    end,
    ended,
  };
};
