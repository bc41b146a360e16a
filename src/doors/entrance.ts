import type { IncomingMessage, ServerResponse } from "node:http";
import type { Door } from "../api/base.ts";
import { ADMIN, type Caller, type Role } from "../api/caller.ts";
import type { Admission, Entrance, SignIn } from "../api/entrance.ts";
import type { PageSettings } from "../config/page-keys.ts";
import { SlipwayError } from "../errors.ts";
import { CLIENT_HOST } from "../protocol/client-host.ts";
import { sameSecret } from "../protocol/token.ts";
import { CODE_SECONDS, type Codes, createCodes } from "./codes.ts";
import { createHosts, nameOfHost } from "./hosts.ts";
import { createRates } from "./rates.ts";
import { type SessionBook, type Sessions, createSessions, pageCaller } from "./sessions.ts";

/**
 * Who comes in at the doors, and as whom. In this order: a token or the key of a session in `Authorization`; at a site's
 * own https the cookie, if the site's own page sends the request; on the socket, whoever cannot be a browser is the
 * owner. Anybody else is a stranger: they get the page's files, may sign in, and are counted.
 */
export interface EntranceOptions {
  readonly token: string;
  /** Of other tokens; undefined: of nobody. */
  readonly callerOf: (token: string) => Caller | undefined;
  readonly settings: () => PageSettings;
  readonly clock: () => number;
  /** Where sessions that outlive the server are written; without it none does. */
  readonly book?: SessionBook | undefined;
  /** Opens the port for browsers on this machine, and says which it is. */
  readonly listen: (port: number) => Promise<number>;
}

export interface DoorEntrance extends Entrance {
  /** Throws unless a stranger may get the page's files under this name. */
  admitPage(incoming: IncomingMessage, door: Door): void;
  readonly sessions: Sessions;
}

export const COOKIE = "__Host-slipway";
const COOKIE_RULES = "Path=/; Secure; HttpOnly; SameSite=Strict";

const STRANGERS = { atOnce: 300, aSecond: 100 };
/** Wrong codes and tokens. They are 256 random bits: this keeps guessing cheap for us, not hopeless for them. */
const GUESSES = { atOnce: 10, aSecond: 1 };

const SAFE = new Set(["GET", "HEAD"]);

/** Marks that browsers leave and that pages cannot leave away. */
const isBrowser = ({ headers }: IncomingMessage): boolean =>
  headers.origin !== undefined || Object.keys(headers).some((name) => name.startsWith("sec-fetch-"));

const bearerOf = ({ headers: { authorization = "" } }: IncomingMessage): string | undefined =>
  authorization.startsWith("Bearer ") ? authorization.slice("Bearer ".length) : undefined;

const cookieOf = ({ headers: { cookie = "" } }: IncomingMessage): string | undefined =>
  cookie
    .split(";")
    .map((each) => each.trim())
    .find((each) => each.startsWith(`${COOKIE}=`))
    ?.slice(COOKIE.length + 1);

const addressOf = ({ socket }: IncomingMessage): string => socket.remoteAddress ?? "gone";

/** Trades what somebody shows for who they are; undefined: it is wrong. */
const trade = (
  given: SignIn,
  codes: Codes,
  tokenCaller: (token: string) => Caller | undefined,
): { readonly caller: () => Caller | undefined; readonly role?: Role } | undefined => {
  if ("code" in given) {
    const role = codes.redeem(given.code);
    return role === undefined ? undefined : { caller: () => pageCaller(role), role };
  }
  const caller = tokenCaller(given.token);
  if (caller?.kind === "user" || caller?.kind === "job")
    throw new SlipwayError("forbidden", { detail: "the page needs a token with a role (read, submit or admin)" });
  return caller === undefined ? undefined : { caller: () => tokenCaller(given.token) };
};

export const createEntrance = (options: EntranceOptions): DoorEntrance => {
  const { settings, clock } = options;
  const codes = createCodes(clock);
  const sessions = createSessions(clock, options.book);
  const isOurs = createHosts(() => {
    const { hosts, origin } = settings();
    return origin === undefined ? hosts : [...hosts, new URL(origin).hostname];
  }, clock);
  const strangers = createRates(STRANGERS, clock);
  const guesses = createRates(GUESSES, clock);

  const tokenCaller = (token: string): Caller | undefined =>
    sameSecret(token, options.token) ? ADMIN : options.callerOf(token);

  /** The cookie, where the site has its own https, and where the request can only be its own page's. */
  const cookieFor = (incoming: IncomingMessage): string | undefined => {
    const key = settings().origin === undefined ? undefined : cookieOf(incoming);
    const from = incoming.headers["sec-fetch-site"];
    return key !== undefined && (from === undefined || from === "same-origin" || from === "none") ? key : undefined;
  };
  const isForged = ({ method = "", headers }: IncomingMessage): boolean =>
    !SAFE.has(method) && headers.origin !== settings().origin;

  /** The key of a session that is in the request, valid or not. */
  const keyIn = (incoming: IncomingMessage): string | undefined => bearerOf(incoming) ?? cookieFor(incoming);

  const misled = (incoming: IncomingMessage): SlipwayError | undefined => {
    const name = nameOfHost(incoming.headers.host);
    if (name !== undefined && isOurs(name)) return undefined;
    return new SlipwayError("host-refused", { host: name ?? "(none)" });
  };

  const countStranger = (incoming: IncomingMessage, door: Door): void => {
    // nobody but the owner reaches the socket
    if (door !== "socket" && !strangers.take(addressOf(incoming))) throw new SlipwayError("too-many-requests");
  };

  const known = (incoming: IncomingMessage, outgoing: ServerResponse): Admission | undefined => {
    const bearer = bearerOf(incoming);
    const byToken = bearer === undefined ? undefined : tokenCaller(bearer);
    if (byToken !== undefined) return { caller: byToken };
    const key = keyIn(incoming);
    const caller = key === undefined ? undefined : sessions.of(key)?.caller();
    if (caller === undefined) return undefined;
    if (key !== bearer && isForged(incoming)) {
      const refused = new SlipwayError("origin-refused", { origin: String(incoming.headers.origin ?? "(nowhere)") });
      return { refused, misled: refused };
    }
    sessions.use(key!, outgoing);
    return { caller };
  };

  return {
    sessions,
    admit: (incoming, outgoing, door) => {
      const admitted = known(incoming, outgoing);
      if (admitted !== undefined) return admitted;
      const isPlain = incoming.headers.host === CLIENT_HOST && !isBrowser(incoming);
      if (door === "socket" && isPlain) return { caller: ADMIN };
      countStranger(incoming, door);
      const host = misled(incoming);
      // a program at the port names the server as it likes: without a token it gets nothing
      if (door === "port" && !isBrowser(incoming)) return { refused: new SlipwayError("unauthorized"), misled: host };
      return { refused: host ?? new SlipwayError("no-session"), misled: host };
    },
    admitPage: (incoming, door) => {
      countStranger(incoming, door);
      const host = misled(incoming);
      if (host !== undefined) throw host;
    },
    newCode: async (role, listen) => {
      const port = listen === undefined ? null : await options.listen(listen.port);
      return { ...codes.make(role), port };
    },
    signIn: (given, incoming, outgoing, door) => {
      const signed = trade(given, codes, tokenCaller);
      if (signed === undefined) {
        if (!guesses.take(addressOf(incoming))) throw new SlipwayError("too-many-requests");
        throw "code" in given
          ? new SlipwayError("sign-in-refused", { seconds: CODE_SECONDS })
          : new SlipwayError("unauthorized");
      }
      const who = signed.caller()!;
      const inCookie = incoming.headers.origin !== undefined && incoming.headers.origin === settings().origin;
      // Where the server listens on a port of 127.0.0.1, somebody else may listen while it is away, and the page would
      // show them its key: such a key must be worth nothing by then.
      const lasts = door === "socket" || inCookie;
      const { key, session } = sessions.begin(signed.caller, lasts ? signed.role : undefined);
      const seconds = Math.floor((session.expires - clock()) / 1000);
      if (inCookie) outgoing.setHeader("set-cookie", `${COOKIE}=${key}; ${COOKIE_RULES}; Max-Age=${seconds}`);
      return {
        key: inCookie ? null : key,
        role: who.kind === "role" ? who.role : "admin",
        name: who.kind === "admin" || who.kind === "role" ? ("code" in given ? null : (who.name ?? null)) : null,
        expires: session.expires,
      };
    },
    sessionOf: (incoming) => {
      const key = keyIn(incoming);
      return key === undefined ? undefined : sessions.of(key);
    },
    signOut: (incoming, outgoing) => {
      const key = keyIn(incoming);
      if (cookieOf(incoming) !== undefined) outgoing.setHeader("set-cookie", `${COOKIE}=; ${COOKIE_RULES}; Max-Age=0`);
      if (key !== undefined) sessions.end(key, outgoing);
    },
  };
};
