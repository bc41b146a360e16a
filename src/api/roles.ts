import { SlipwayError } from "../errors.ts";
import { BASE } from "./base.ts";
import { type Caller, ROLES, type Role } from "./caller.ts";

/**
 * The one table of who may use which route. A route that is not in it is for `admin`: nothing is open by mistake, and a
 * test finds what is missing here.
 */
export interface Access {
  /** The least role that may use it. */
  readonly role: Role;
  /** Users with a token of their own may, too; they find only their own launches there. */
  readonly users?: true;
  /** A job may, with its own token, for its own launch. */
  readonly jobs?: true;
  /** It needs no token at all: it says nothing about anybody's work. */
  readonly anyone?: true;
}

const READ: Access = { role: "read" };
const SUBMIT: Access = { role: "submit" };
const ADMIN: Access = { role: "admin" };
const USERS_READ: Access = { role: "read", users: true };
const USERS_SUBMIT: Access = { role: "submit", users: true };
const ANYONE: Access = { role: "read", anyone: true };

export const ACCESS: ReadonlyMap<string, Access> = new Map(
  Object.entries({
    "GET /healthz": ANYONE,
    "GET /readyz": ANYONE,
    "GET /metrics": READ,
    "GET /api/v1/openapi.json": USERS_READ,
    "GET /api/v1/server": USERS_READ,
    "GET /api/v1/status": READ,
    "GET /api/v1/overview": READ,
    "GET /api/v1/live": READ,
    "GET /api/v1/live/next": READ,
    "GET /api/v1/series": READ,
    "POST /api/v1/server/stop": ADMIN,
    "POST /api/v1/server/compact": ADMIN,
    "POST /api/v1/validate": SUBMIT,
    "POST /api/v1/outputs/known": SUBMIT,
    "POST /api/v1/server/reload": ADMIN,
    "GET /api/v1/runs": READ,
    "POST /api/v1/runs": SUBMIT,
    "POST /api/v1/run-files": SUBMIT,
    "GET /api/v1/runs/{run}": READ,
    "GET /api/v1/runs/{run}/efficiency": READ,
    "GET /api/v1/runs/{run}/watch": READ,
    "GET /api/v1/runs/{run}/logs": READ,
    "GET /api/v1/runs/{run}/why": READ,
    "POST /api/v1/runs/{run}/cancel": SUBMIT,
    "POST /api/v1/runs/{run}/retry": SUBMIT,
    "GET /api/v1/runs/{run}/task-table": READ,
    "GET /api/v1/runs/{run}/stages": READ,
    "GET /api/v1/runs/{run}/timeline": READ,
    "GET /api/v1/runs/{run}/failures": READ,
    "GET /api/v1/runs/{run}/tasks": READ,
    "GET /api/v1/runs/{run}/tasks/{task}": READ,
    "GET /api/v1/runs/{run}/tasks/{task}/logs": READ,
    "GET /api/v1/runs/{run}/tasks/{task}/why": READ,
    "GET /api/v1/events": READ,
    "GET /api/v1/pilots": READ,
    "POST /api/v1/pilots": ADMIN,
    "GET /api/v1/pilots/{pilot}": READ,
    "POST /api/v1/pilots/{pilot}/drain": ADMIN,
    "POST /api/v1/pilots/{pilot}/cancel": ADMIN,
    "GET /api/v1/clusters": READ,
    "GET /api/v1/clusters/{name}": READ,
    "POST /api/v1/clusters/{name}/check": SUBMIT,
    "GET /api/v1/wraps": READ,
    "GET /api/v1/jobs": USERS_READ,
    "GET /api/v1/jobs/{job}": USERS_READ,
    "GET /api/v1/why": USERS_READ,
    "GET /api/v1/launches": USERS_READ,
    "POST /api/v1/launches": USERS_SUBMIT,
    "GET /api/v1/launches/{launch}": USERS_READ,
    "GET /api/v1/launches/{launch}/watch": USERS_READ,
    "GET /api/v1/launches/{launch}/logs": USERS_READ,
    "DELETE /api/v1/launches/{launch}": USERS_SUBMIT,
    "POST /api/v1/launches/{launch}/clean": USERS_SUBMIT,
    "POST /api/v1/launches/{launch}/output": { role: "admin", jobs: true },
    "POST /api/v1/session/codes": ADMIN,
    "POST /api/v1/session": ANYONE,
    "GET /api/v1/session": USERS_READ,
    "DELETE /api/v1/session": USERS_READ,
    "GET /api/v1/tokens": ADMIN,
    "POST /api/v1/tokens": ADMIN,
    "DELETE /api/v1/tokens/{user}": ADMIN,
  } satisfies Record<string, Access>),
);

export const accessTo = (method: string, template: string): Access =>
  ACCESS.get(`${method === "HEAD" ? "GET" : method.toUpperCase()} ${template}`) ?? ADMIN;

const ALIVE: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

/** Whether it is answered without a token: questions whether the server lives, with any method, and signing in. */
export const isAnyones = (method: string, path: string): "alive" | "sign-in" | undefined => {
  if (ALIVE.has(path)) return "alive";
  return ACCESS.get(`${method} ${path}`)?.anyone === true ? "sign-in" : undefined;
};

const holds = (role: Role, least: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(least);

/** Throws unless this caller may use this route at all; who owns a launch is checked where it is looked up. */
export const checkAccess = (caller: Caller, access: Access, path: string): void => {
  switch (caller.kind) {
    case "admin":
      return;
    case "role":
      if (holds(caller.role, access.role)) return;
      throw new SlipwayError("forbidden", {
        detail: `it has the role ${caller.role}, and ${path} needs ${access.role}`,
      });
    case "user":
      if (access.users === true || access.anyone === true) return;
      throw new SlipwayError("forbidden", { detail: `${path} is for the home's owner` });
    case "job":
      if (access.jobs === true && path === `${BASE}/launches/${caller.launch}/output`) return;
      throw new SlipwayError("forbidden", { detail: "a job's token is good only for its own log" });
  }
};
