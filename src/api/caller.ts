import { SlipwayError } from "../errors.ts";
import { BASE } from "./base.ts";
import type { LaunchId } from "../core/ids.ts";

/**
 * Who asks. The home's own token, and whoever reaches the unix socket, may do everything; a user with a token of their
 * own sees only their own launches; a job may add to its own log and nothing else (rule 16).
 */
export type Caller =
  | { readonly kind: "admin" }
  | { readonly kind: "user"; readonly user: string }
  | { readonly kind: "job"; readonly launch: LaunchId };

export const ADMIN: Caller = { kind: "admin" };

const OF_USERS = [`${BASE}/launches`, `${BASE}/jobs`, `${BASE}/server`, `${BASE}/openapi.json`];

const isUnder = (path: string, base: string): boolean => path === base || path.startsWith(`${base}/`);

const mayUse = (caller: Caller, method: string, path: string): boolean => {
  if (caller.kind === "admin") return true;
  if (caller.kind === "job") return method === "POST" && path === `${BASE}/launches/${caller.launch}/output`;
  return OF_USERS.some((base) => (base.endsWith("/server") ? path === base : isUnder(path, base)));
};

/** Throws unless this caller may use this path at all; who owns a launch is checked where it is looked up. */
export const checkPath = (caller: Caller, method: string, path: string): void => {
  if (!mayUse(caller, method, path))
    throw new SlipwayError("forbidden", {
      detail: caller.kind === "job" ? "a job's token is good only for its own log" : `${path} is for the home's owner`,
    });
};

/** What the error log calls them. */
export const nameOf = (caller: Caller): string =>
  caller.kind === "user" ? caller.user : caller.kind === "job" ? `job ${caller.launch}` : "the home's owner";
