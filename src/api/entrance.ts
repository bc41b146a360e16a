import type { IncomingMessage, ServerResponse } from "node:http";
import type { SlipwayError } from "../errors.ts";
import type { Door } from "./base.ts";
import { ADMIN, type Caller, type Role } from "./caller.ts";

/** Who comes in, and as whom. What they may do then is in roles.ts. */
export interface Entrance {
  /** Whoever shows a token, a session, or comes as the owner over the socket; else why not. Counts strangers. */
  admit(incoming: IncomingMessage, outgoing: ServerResponse, door: Door): Admission;
  /** A code for somebody who can prove to be the owner. With `listen`, browsers on this machine find a port open. */
  newCode(role: Role, listen: { readonly port: number } | undefined): Promise<NewCode>;
  /** Trades a code or a token for a session; sets the cookie where the site has its own https. */
  signIn(given: SignIn, incoming: IncomingMessage, outgoing: ServerResponse, door: Door): SignedIn;
  /** The session that a request uses; undefined: it shows a token. */
  sessionOf(incoming: IncomingMessage): { readonly expires: number } | undefined;
  /** Ends the session that a request uses, and its streams. */
  signOut(incoming: IncomingMessage, outgoing: ServerResponse): void;
}

/** `misled`: whoever asks believes to speak with somebody else, so not even what is for anybody is answered. */
export type Admission =
  | { readonly caller: Caller }
  | { readonly caller?: undefined; readonly refused: SlipwayError; readonly misled?: SlipwayError | undefined };

export interface NewCode {
  readonly code: string;
  readonly expires: number;
  readonly port: number | null;
}

export type SignIn = { readonly code: string } | { readonly token: string };

export interface SignedIn {
  /** Null: it is in the cookie. */
  readonly key: string | null;
  readonly role: Role;
  readonly name: string | null;
  readonly expires: number;
}

/** Where nobody but the owner can come: whoever asks is let in, and there are no sessions. */
export const ownersOnly = (refuse: () => never): Entrance => ({
  admit: () => ({ caller: ADMIN }),
  newCode: refuse,
  signIn: refuse,
  sessionOf: () => undefined,
  signOut: refuse,
});
