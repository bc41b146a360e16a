import type { IncomingMessage, ServerResponse } from "node:http";
import type { Door } from "../api/base.ts";
import { PROBLEM_TYPE, problemOf } from "../api/problem.ts";
import { SlipwayError } from "../errors.ts";
import { type PageFile, readPageFiles } from "./page-files.ts";

/** Answers with the page's files: `/` is its index.html, `/page/NAME` a file. They hold nothing secret: anybody gets them. */
export interface Page {
  /** Whether this request is for the page; if so it is answered. */
  answer(incoming: IncomingMessage, outgoing: ServerResponse, door: Door): boolean;
}

export interface PageOptions {
  readonly directory: string;
  /** Throws unless this request may be answered. */
  readonly admit: (incoming: IncomingMessage, door: Door) => void;
  readonly log: (text: string) => void;
}

const GUARDS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

/** A year: what has a hash in its name never changes. */
const FOREVER = "public, max-age=31536000, immutable";

/** The file that a path names; undefined: it is not one of the page's. */
const nameIn = (path: string): string | undefined => {
  if (path === "/" || path === "/index.html") return "index.html";
  return path.startsWith("/page/") ? path.slice("/page/".length) : undefined;
};

const takesGzip = (header: string | string[] | undefined): boolean =>
  String(header ?? "")
    .split(",")
    .some((each) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(each));

const hasSeen = (header: string | undefined, etag: string): boolean =>
  (header ?? "").split(",").some((each) => each.trim().replace(/^W\//, "") === `"${etag}"`);

const send = ({ headers, method }: IncomingMessage, outgoing: ServerResponse, file: PageFile): void => {
  const zipped = file.gzip !== undefined && takesGzip(headers["accept-encoding"]) ? file.gzip : undefined;
  // weak: packed or not, it is the same file
  const about = {
    ...GUARDS,
    etag: `W/"${file.etag}"`,
    vary: "accept-encoding",
    "cache-control": file.isHashed ? FOREVER : "no-cache",
  };
  if (hasSeen(headers["if-none-match"], file.etag)) return void outgoing.writeHead(304, about).end();
  const body = zipped ?? file.body;
  outgoing.writeHead(200, {
    ...about,
    "content-type": file.type,
    "content-length": body.length,
    ...(zipped === undefined ? {} : { "content-encoding": "gzip" }),
  });
  outgoing.end(method === "HEAD" ? undefined : body);
};

/** A refusal, in words where a person reads it. */
const refuse = ({ headers, method }: IncomingMessage, outgoing: ServerResponse, error: SlipwayError): void => {
  const isPerson = String(headers.accept ?? "").includes("text/html");
  const body = isPerson ? `${error.message}\n\n${error.hint}\n` : JSON.stringify(problemOf(error));
  outgoing.writeHead(error.row.http, {
    ...GUARDS,
    connection: "close",
    "cache-control": "no-store",
    "content-type": isPerson ? "text/plain; charset=utf-8" : PROBLEM_TYPE,
    "content-length": Buffer.byteLength(body),
    ...(error.code === "wrong-method" ? { allow: "GET, HEAD" } : {}),
    ...(error.code === "too-many-requests" ? { "retry-after": "2" } : {}),
  });
  outgoing.end(method === "HEAD" ? undefined : body);
};

export const createPage = ({ directory, admit, log }: PageOptions): Page => {
  let reading: Promise<ReadonlyMap<string, PageFile>> | undefined;
  const files = (): Promise<ReadonlyMap<string, PageFile>> => {
    reading ??= readPageFiles(directory).catch((error: unknown) => {
      // it may be built meanwhile
      reading = undefined;
      throw error;
    });
    return reading;
  };
  const find = async ({ method = "" }: IncomingMessage, name: string, path: string): Promise<PageFile> => {
    if (method !== "GET" && method !== "HEAD")
      throw new SlipwayError("wrong-method", { path, method, allow: "GET, HEAD" });
    const file = (await files()).get(name);
    if (file === undefined) throw new SlipwayError("not-found", { what: path });
    return file;
  };
  return {
    answer: (incoming, outgoing, door) => {
      const path = (incoming.url ?? "").split("?", 1)[0]!;
      const name = nameIn(path);
      if (name === undefined) return false;
      const work = async (): Promise<void> => {
        admit(incoming, door);
        send(incoming, outgoing, await find(incoming, name, path));
      };
      work().catch((error: unknown) => {
        if (!(error instanceof SlipwayError)) log(`${path}: ${(error as Error).message}`);
        const known =
          error instanceof SlipwayError
            ? error
            : new SlipwayError("internal", { detail: (error as Error).message }, error);
        refuse(incoming, outgoing, known);
      });
      return true;
    },
  };
};
