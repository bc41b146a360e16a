import type { LaunchId } from "../core/ids.ts";

/**
 * Who asks. The home's own token, a token with the role `admin`, and whoever reaches the unix socket may do everything;
 * the other roles are for people and programs that act for the home's owner. A user with a token of their own sees only
 * their own launches; a job may add to its own log and nothing else (rule 16). Who may use which route: roles.ts.
 */
export type Caller =
  | { readonly kind: "admin"; readonly name?: string }
  | { readonly kind: "role"; readonly name: string; readonly role: "read" | "submit" }
  | { readonly kind: "user"; readonly user: string }
  | { readonly kind: "job"; readonly launch: LaunchId };

export const ADMIN: Caller = { kind: "admin" };

export const ROLES = ["read", "submit", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** Whoever shows a token with a role. */
export const callerWith = (name: string, role: Role): Caller =>
  role === "admin" ? { kind: "admin", name } : { kind: "role", name, role };

/** What the error log calls them. */
export const nameOf = (caller: Caller): string => {
  switch (caller.kind) {
    case "user":
      return caller.user;
    case "job":
      return `job ${caller.launch}`;
    default:
      return caller.name ?? "the home's owner";
  }
};
