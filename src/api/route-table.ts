import type { IncomingMessage } from "node:http";
import { SlipwayError } from "../errors.ts";

/**
 * What is documented is what is answered: a path that no route has does not exist, a method that its routes lack is
 * refused with those that they have, and a body must be of a type that its route takes.
 */

/** A route as it was described. */
export interface DescribedRoute {
  readonly method: string;
  readonly path: string;
  readonly request?:
    | { readonly body?: { readonly content: object; readonly required?: boolean | undefined } | undefined }
    | undefined;
}

export interface FoundRoute {
  /** As it was described: /api/v1/runs/{run}. */
  readonly template: string;
  /** The types of its body; none: it takes no body. */
  readonly types: readonly string[];
  readonly needsBody: boolean;
}

export interface RouteTable {
  /** Throws not-found, or wrong-method with `allow` among its facts. */
  find(method: string, path: string): FoundRoute;
}

const patternOf = (path: string): RegExp => {
  const literal = path.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join("[^/]+")}$`);
};

export const createRouteTable = (routes: readonly DescribedRoute[]): RouteTable => {
  const paths = new Map<string, { readonly pattern: RegExp; readonly methods: Map<string, FoundRoute> }>();
  for (const { method, path, request } of routes) {
    const known = paths.get(path) ?? { pattern: patternOf(path), methods: new Map<string, FoundRoute>() };
    paths.set(path, known);
    const { body } = request ?? {};
    known.methods.set(method.toUpperCase(), {
      template: path,
      types: Object.keys(body?.content ?? {}),
      needsBody: body?.required === true,
    });
  }
  return {
    find: (method, path) => {
      const known = [...paths.values()].find(({ pattern }) => pattern.test(path));
      if (known === undefined) throw new SlipwayError("not-found", { what: path });
      const found = known.methods.get(method === "HEAD" ? "GET" : method);
      if (found !== undefined) return found;
      const names = [...known.methods.keys()];
      const allow = [...names, ...(names.includes("GET") ? ["HEAD"] : [])].join(", ");
      throw new SlipwayError("wrong-method", { path, method, allow });
    },
  };
};

/** Whether a request carries a body. Node takes one without a length, in pieces, by its transfer-encoding. */
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** The type of the body; undefined: there is none. Throws when the route does not take that type, or needs a body. */
export const bodyType = (incoming: IncomingMessage, { types, needsBody }: FoundRoute): string | undefined => {
  if (types.length === 0) return undefined;
  if (!hasBody(incoming)) {
    if (needsBody) throw new SlipwayError("bad-request", { detail: "this request needs a body" });
    return undefined;
  }
  const given = (incoming.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase();
  if (types.includes(given)) return given;
  throw new SlipwayError("media-type", {
    given: given === "" ? "a body without a type" : given,
    types: types.join(" or "),
  });
};
