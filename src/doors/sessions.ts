import { createHash, randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { ADMIN, type Caller, type Role, callerWith } from "../api/caller.ts";

/**
 * Sessions of people who look at the page. They end by themselves: 12 hours after they were last used (or after the
 * server began), 7 days after they began, or with the token that they were made from. Those that last are written down
 * and outlive the server; the others live in its memory alone.
 */
export const IDLE_MS = 12 * 3_600_000;
export const LONGEST_MS = 7 * 24 * 3_600_000;
export const MOST_SESSIONS = 200;

export interface Session {
  readonly expires: number;
  /** Undefined: what it was made from is no longer good. */
  caller(): Caller | undefined;
}

/** One that outlives the server: the key's hash, since the key itself is nobody's but the browser's. */
export interface LastingSession {
  readonly hash: string;
  readonly role: Role;
  readonly expires: number;
}

/** Whoever signed in with a code. */
export const pageCaller = (role: Role): Caller => (role === "admin" ? ADMIN : callerWith("page", role));

/** Where those that last are written down. */
export interface SessionBook {
  /** As the last server left them. */
  readonly found: readonly LastingSession[];
  /** From now on, these. */
  keep(sessions: readonly LastingSession[]): void;
}

export interface Sessions {
  /** With a role it lasts. */
  begin(caller: () => Caller | undefined, lasting?: Role): { readonly key: string; readonly session: Session };
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
  readonly lasting: Role | undefined;
  readonly open: Set<Pick<ServerResponse, "destroy">>;
}

/** The key itself is not kept: looking a hash up reveals nothing about a key that is nearly right. */
const hashOf = (key: string): string => createHash("sha256").update(key).digest("base64");

export const createSessions = (clock: () => number, book?: SessionBook): Sessions => {
  // in order of their last use
  const sessions = new Map<string, Kept>();
  let lastUsed = clock();
  for (const { hash, role, expires } of book?.found.slice(-MOST_SESSIONS) ?? []) {
    const caller = pageCaller(role);
    const ends = Math.min(expires, clock() + LONGEST_MS);
    if (ends > clock())
      sessions.set(hash, { caller: () => caller, lasting: role, expires: ends, lastUsed, open: new Set() });
  }
  const writeDown = (): void =>
    book?.keep(
      [...sessions].flatMap(([hash, { lasting, expires }]) =>
        lasting === undefined ? [] : [{ hash, role: lasting, expires }],
      ),
    );
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
    if (session?.lasting !== undefined) writeDown();
    for (const outgoing of session?.open ?? []) if (outgoing !== but) outgoing.destroy();
  };
  const live = (hash: string): Kept | undefined => {
    const session = sessions.get(hash);
    if (session === undefined || !isOver(session)) return session;
    endHash(hash);
    return undefined;
  };
  return {
    begin: (caller, lasting) => {
      const key = randomBytes(32).toString("base64url");
      const expires = clock() + LONGEST_MS;
      const session: Kept = { caller, lasting, expires, lastUsed: clock(), open: new Set() };
      for (const [oldest] of sessions) {
        if (sessions.size < MOST_SESSIONS) break;
        endHash(oldest);
      }
      sessions.set(hashOf(key), session);
      if (lasting !== undefined) writeDown();
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
    // those that last stay as they are written
    close: () => {
      for (const { open } of sessions.values()) for (const outgoing of open) outgoing.destroy();
      sessions.clear();
    },
  };
};
