import { signal } from "@preact/signals";
import { replace } from "./route.ts";

/**
 * Who we are to the server. `slipway open` puts a one-time code into the address's fragment, which no server ever sees by
 * itself; it is exchanged for a key that lives as long as this tab. Behind a site's own https a cookie takes its place.
 */

const STORED = "slipway-key";

/** False: the server asked who we are, and we could not say. */
export const signedIn = signal(true);
/** What we may do, as far as the server said; undefined: not known. */
export const role = signal<"read" | "submit" | "admin" | undefined>(undefined);

let key: string | null = sessionStorage.getItem(STORED);

export const authorization = (): Record<string, string> => (key === null ? {} : { authorization: `Bearer ${key}` });

interface Session {
  readonly key?: string | null;
  readonly role: "read" | "submit" | "admin";
}

const keep = (session: Session): void => {
  if (typeof session.key === "string") {
    key = session.key;
    sessionStorage.setItem(STORED, session.key);
  }
  role.value = session.role;
  signedIn.value = true;
};

/** The server does not know this key (any more). */
export const refuse = (): void => {
  key = null;
  sessionStorage.removeItem(STORED);
  signedIn.value = false;
};

/** A code or a token for a session; undefined when it worked, else what the server said. */
export const signIn = async (proof: { readonly code: string } | { readonly token: string }) => {
  const answer = await fetch("api/v1/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(proof),
  }).catch(() => undefined);
  if (answer === undefined) return "The server does not answer.";
  const told = (await answer.json().catch(() => ({}))) as Record<string, unknown>;
  if (!answer.ok) return typeof told["detail"] === "string" ? told["detail"] : `The server answered ${answer.status}.`;
  keep(told as unknown as Session);
  return undefined;
};

const CODE = /^#code=([^&]{1,400})(?:&(.*))?$/;

/** Takes the code out of the address, so that it stays in no history, and exchanges it. */
export const begin = async (): Promise<void> => {
  const found = CODE.exec(location.hash);
  if (found !== null) {
    replace(`${location.pathname}${location.search}#${found[2] ?? "/"}`);
    await signIn({ code: decodeURIComponent(found[1]!) });
  }
  const answer = await fetch("api/v1/session", { headers: authorization(), cache: "no-store" }).catch(() => undefined);
  if (answer?.ok === true) keep((await answer.json()) as Session);
  else if (answer?.status === 401) refuse();
};
