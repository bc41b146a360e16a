import { constants } from "node:os";
import { failedStart } from "./events.ts";
import type { Spawner, SpawnerListener } from "./spawner.ts";

/**
 * Spawners for tasks that were lost with theirs: each attempt has one of its own, so that it can take down nothing but
 * itself. A spawner starts when it is needed and a place is free.
 */
export interface LoneSpawners {
  /**
   * The spawner of this attempt; requests wait until it has started. Close it when nothing of the attempt runs any
   * more.
   */
  of(attempt: string): Spawner;
  [Symbol.iterator](): Iterator<Spawner>;
  close(): Promise<void>;
}

export interface LoneOptions {
  readonly kind: Spawner["kind"];
  /** How many may exist at a time. */
  readonly most: number;
  readonly start: (closed: (reason: string) => void) => Promise<Spawner>;
  readonly exit: SpawnerListener["exit"];
  /** Its process is gone, and with it what ran there. */
  readonly lost: (spawner: Spawner, reason: string) => void;
}

type Begin = (spawner: Spawner) => void;

export const createLoneSpawners = (options: LoneOptions): LoneSpawners => {
  const byAttempt = new Map<string, Spawner>();
  const waiting: (() => void)[] = [];
  let taken = 0;

  const place = async (): Promise<void> => {
    if (taken >= options.most) return new Promise((resolve) => void waiting.push(resolve));
    taken += 1;
  };
  /** The place goes to whoever has waited longest. */
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) taken -= 1;
    else next();
  };

  const make = (attempt: string): Spawner => {
    let real: Spawner | undefined;
    let isOver = false;
    /** Starts by id, and what must be sent before them. */
    const starts = new Map<number, Begin>();
    const before: Begin[] = [];

    const forget = (): void => {
      isOver = true;
      if (byAttempt.get(attempt) === later) byAttempt.delete(attempt);
    };
    const refuse = (id: number, errno: number): void =>
      queueMicrotask(() => options.exit(failedStart(id, "dropped", errno)));
    const begin = async (): Promise<void> => {
      await place();
      if (isOver) return leave();
      try {
        const made = await options.start((reason) => {
          leave();
          forget();
          options.lost(later, reason);
        });
        real = made;
        for (const say of [...before, ...starts.values()]) say(made);
        // all of it was cancelled while the process started
        if (isOver) await made.close();
      } catch {
        leave();
        forget();
        for (const id of starts.keys()) refuse(id, constants.errno.EPIPE);
      }
    };
    const say = (what: Begin): void => {
      if (real === undefined) before.push(what);
      else what(real);
    };

    const later: Spawner = {
      kind: options.kind,
      get pid() {
        return real?.pid ?? 0;
      },
      get pipes() {
        return real?.pipes ?? "";
      },
      defineEnv: (id, entries) => say((spawner) => spawner.defineEnv(id, entries)),
      dropEnv: (id) => real?.dropEnv(id),
      start: (request) => {
        if (real === undefined) starts.set(request.id, (spawner) => spawner.start(request));
        else real.start(request);
      },
      end: (id, graceMs) => {
        if (real !== undefined) return real.end(id, graceMs);
        if (starts.delete(id)) refuse(id, constants.errno.ECANCELED);
      },
      signal: (id, signo) => real?.signal(id, signo),
      flush: () => real?.flush(),
      pause: () => real?.pause(),
      resume: () => real?.resume(),
      close: async () => {
        forget();
        await real?.close();
      },
    };
    void begin();
    return later;
  };

  return {
    of: (attempt) => {
      const known = byAttempt.get(attempt);
      if (known !== undefined) return known;
      const made = make(attempt);
      byAttempt.set(attempt, made);
      return made;
    },
    [Symbol.iterator]: () => byAttempt.values(),
    close: async () => {
      await Promise.all([...byAttempt.values()].map((spawner) => spawner.close()));
    },
  };
};
