import http from "node:http";
import path from "node:path";
import { errorFromJSON, SlipwayError } from "../errors.ts";
import { CLIENT_HOST } from "../protocol/client-host.ts";
import type { Endpoint } from "../protocol/endpoint.ts";
import { addressOf, agentFor } from "./dial.ts";
import { readToken } from "./remote.ts";

const BASE = "/api/v1";
const CLOCK_HEADER = "slipway-clock";
/** An answer must begin within this time, and one that is not a stream must move. */
const ANSWER_TIMEOUT = 120_000;
const LARGEST_ERROR = 1024 * 1024;

export interface Request {
  readonly method?: "GET" | "POST" | "DELETE";
  /** Below /api/v1, with its query. */
  readonly path: string;
  readonly json?: unknown;
  /** A body sent piece by piece with back-pressure, as NDJSON. */
  readonly body?: AsyncIterable<string>;
  /** A stream: once it has begun, it may be silent for as long as it likes. */
  readonly follow?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface Transport {
  readonly endpoint: Endpoint;
  /** Resolves with the body of a 2xx answer, not read yet; everything else is thrown as a SlipwayError. */
  send(request: Request): Promise<AsyncIterable<Buffer>>;
  /** The server's clock minus this process's monotonic one, as of the last answer. */
  readonly clockOffset: number | undefined;
  close(): void;
}

/** Whether an error means that the connection, not the request, is at fault. */
export const isConnectionLost = (error: unknown): error is SlipwayError =>
  error instanceof SlipwayError && (error.code === "server-gone" || error.code === "no-server");

const bodyOf = async (response: http.IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_ERROR) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
};

const refusal = async (response: http.IncomingMessage): Promise<SlipwayError> => {
  const text = await bodyOf(response);
  try {
    const known = errorFromJSON(JSON.parse(text));
    if (known !== undefined) return known;
  } catch {
    // Not JSON: reported as it is below.
  }
  return new SlipwayError("internal", {
    detail: `the server answered ${response.statusCode ?? "nothing"} ${text.slice(0, 200)}`.trim(),
  });
};

/** Writes pieces as fast as the server takes them, until all are sent or the server has answered. */
const pour = async (
  request: http.ClientRequest,
  body: AsyncIterable<string>,
  answered: () => boolean,
): Promise<void> => {
  for await (const piece of body) {
    if (answered() || request.destroyed) return;
    if (request.write(piece)) continue;
    await new Promise<void>((resolve) => {
      const go = (): void => {
        for (const event of ["drain", "close", "error", "response"]) request.off(event, go);
        resolve();
      };
      for (const event of ["drain", "close", "error", "response"]) request.once(event, go);
    });
  }
  if (!answered()) request.end();
};

export const openTransport = async (
  home: string,
  endpoint: Endpoint,
  agent: http.Agent = agentFor(endpoint),
): Promise<Transport> => {
  const token = await readToken(home);
  let clockOffset: number | undefined;
  const lost = (cause: unknown): SlipwayError =>
    new SlipwayError(
      "server-gone",
      {
        address: addressOf(endpoint),
        detail: cause instanceof Error ? cause.message : String(cause),
        log: path.join(home, "logs", "server.log"),
      },
      cause,
    );

  const exchange = (wanted: Request): Promise<http.IncomingMessage> =>
    new Promise((resolve, reject) => {
      let answered = false;
      const headers: http.OutgoingHttpHeaders = { host: CLIENT_HOST, accept: "application/json, application/x-ndjson" };
      if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
      const text = wanted.json === undefined ? undefined : JSON.stringify(wanted.json);
      if (text !== undefined) {
        headers["content-type"] = "application/json";
        headers["content-length"] = Buffer.byteLength(text);
      } else if (wanted.body !== undefined) headers["content-type"] = "application/x-ndjson";
      else if (wanted.method === "POST") headers["content-length"] = 0;

      const request = http.request({ agent, method: wanted.method ?? "GET", path: BASE + wanted.path, headers });
      const abort = (): void => {
        request.destroy(new Error("interrupted"));
      };
      if (wanted.signal?.aborted === true) abort();
      wanted.signal?.addEventListener("abort", abort, { once: true });
      request.once("close", () => wanted.signal?.removeEventListener("abort", abort));
      request.setTimeout(ANSWER_TIMEOUT, () =>
        request.destroy(new Error(`no answer within ${ANSWER_TIMEOUT / 1000} s`)),
      );
      request.once("response", (response) => {
        answered = true;
        if (wanted.follow === true) request.setTimeout(0);
        const clock = Number(response.headers[CLOCK_HEADER]);
        if (clock > 0) clockOffset = clock - performance.now();
        resolve(response);
      });
      // Stays for the life of the request: after an answer, its stream reports what went wrong.
      request.on("error", (error) => reject(lost(error)));
      if (wanted.body === undefined) request.end(text);
      else
        pour(request, wanted.body, () => answered).catch((error: unknown) => {
          // The source of the body failed (a file that cannot be read): without its end nothing was submitted.
          reject(error instanceof Error ? error : new Error(String(error)));
          request.destroy();
        });
    });

  /** The body of an answer. A connection lost half-way says so; leaving early closes the connection. */
  async function* chunksOf(response: http.IncomingMessage): AsyncGenerator<Buffer> {
    try {
      yield* response as AsyncIterable<Buffer>;
    } catch (error) {
      throw lost(error);
    }
  }

  const send = async (wanted: Request): Promise<AsyncIterable<Buffer>> => {
    const response = await exchange(wanted);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return chunksOf(response);
    const error = await refusal(response).catch((cause: unknown) => lost(cause));
    response.destroy();
    throw error;
  };

  return {
    endpoint,
    send,
    get clockOffset() {
      return clockOffset;
    },
    close: () => agent.destroy(),
  };
};

/** Reads a whole JSON answer. */
export const readJson = async (body: AsyncIterable<Buffer>): Promise<unknown> => {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
};
