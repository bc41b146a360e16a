import { createHash, randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Caller } from "../api/caller.ts";

/**
 * Sessions of people who look at the page. They live in the server's memory alone and end by themselves: 12 hours after
 * they were last used, 7 days after they began, with the token that they were made from, or with the server.
 */
export const IDLE_MS = 12 * 3_600_000;
export const LONGEST_MS = 7 * 24 * 3_600_000;
const MOST_SESSIONS = 200;

export interface Session {
  readonly expires: number;
  /** Undefined: what it was made from is no longer good. */
  caller(): Caller | undefined;
}

export interface Sessions {
  begin(caller: () => Caller | undefined): { readonly key: string; readonly session: Session };
  /** The session of a key, if it still counts. */
  of(key: string): Session | undefined;
  /** Until the answer has been sent, the session is in use; an answer that lasts longer than the session ends with it. */
  use(key: string, outgoing: Pick<ServerResponse, "once" | "destroy">): void;
  /** Ends it and all its answers but this one. */
  end(key: string, answer: object): void;
  /** Ends what is over. */
  sweep(): void;
  /** When one was last used or begun; the start where there was none. */
  readonly lastUsed: number;
  readonly size: number;
  close(): void;
}

interface Kept extends Session {
  lastUsed: number;
  readonly open: Set<Pick<ServerResponse, "destroy">>;
}

/** The key itself is not kept: looking a hash up reveals nothing about a key that is nearly right. */
const hashOf = (key: string): string => createHash("sha256").update(key).digest("base64");

export const createSessions = (clock: () => number): Sessions => {
  // in order of their last use
  const sessions = new Map<string, Kept>();
  let lastUsed = clock();
  const touch = (hash: string, session: Kept): void => {
    session.lastUsed = lastUsed = clock();
    if (!sessions.delete(hash)) return;
    sessions.set(hash, session);
  };
  const isOver = ({ expires, lastUsed: last, open, caller }: Kept): boolean =>
    clock() >= expires || (open.size === 0 && clock() >= last + IDLE_MS) || caller() === undefined;
  const endHash = (hash: string, but?: object): void => {
    const session = sessions.get(hash);
    sessions.delete(hash);
    for (const outgoing of session?.open ?? []) if (outgoing !== but) outgoing.destroy();
  };
  const live = (hash: string): Kept | undefined => {
    const session = sessions.get(hash);
    if (session === undefined || !isOver(session)) return session;
    endHash(hash);
    return undefined;
  };
  return {
    begin: (caller) => {
      const key = randomBytes(32).toString("base64url");
      const session: Kept = { caller, expires: clock() + LONGEST_MS, lastUsed: clock(), open: new Set() };
      for (const [oldest] of sessions) {
        if (sessions.size < MOST_SESSIONS) break;
        endHash(oldest);
      }
      sessions.set(hashOf(key), session);
      lastUsed = clock();
      return { key, session };
    },
    of: (key) => live(hashOf(key)),
    use: (key, outgoing) => {
      const hash = hashOf(key);
      const session = live(hash);
      if (session === undefined) return;
      session.open.add(outgoing);
      touch(hash, session);
      outgoing.once("close", () => {
        session.open.delete(outgoing);
        touch(hash, session);
      });
    },
    end: (key, answer) => endHash(hashOf(key), answer),
    sweep: () => {
      for (const hash of sessions.keys()) live(hash);
    },
    get lastUsed() {
      return [...sessions.values()].some(({ open }) => open.size > 0) ? clock() : lastUsed;
    },
    get size() {
      return sessions.size;
    },
    close: () => {
      for (const hash of sessions.keys()) endHash(hash);
    },
  };
};
