import http from "node:http";
import { readFile } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { CLIENT_HOST } from "../../protocol/client-host.ts";
import { dialServer, type Reachable } from "../../protocol/dial-server.ts";
import type { StreamSettings } from "./settings.ts";
import type { Piece } from "./unsent.ts";

/**
 * How pieces of a rank's output reach the server: one request at a time over one connection, which is reopened when
 * lost.
 */

export type StreamName = "stdout" | "stderr";

export interface PostOutput {
  /** Resolves with the bytes of the stream that the server has now; rejects with `Refused` if it wants no more. */
  post(stream: StreamName, piece: Piece): Promise<number>;
  close(): void;
}

/** The server does not want it, and never will. */
export class Refused extends Error {}

const ANSWER_MS = 20_000;
/** Status codes from 400 up that may change next time: too slow, too often. */
const LATER = [408, 429];

const connections = (endpointFile: string): http.Agent => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  return Object.assign(agent, {
    createConnection: (_options: unknown, created: (error: Error | null, socket?: Duplex) => void): undefined => {
      // read again for every connection: the next server may be elsewhere
      readFile(endpointFile, "utf8")
        .then((text) => dialServer(JSON.parse(text) as Reachable))
        .then(
          (socket) => created(null, socket),
          (error: unknown) => created(error as Error),
        );
      return undefined;
    },
  });
};

interface Answer {
  readonly status: number;
  readonly text: string;
}

const ask = (options: http.RequestOptions, body: Buffer): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const request = http.request(options);
    request.setTimeout(ANSWER_MS, () => request.destroy(new Error("no answer")));
    request.once("error", reject);
    request.once("response", (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.once("error", reject);
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString("utf8") }),
      );
    });
    request.end(body);
  });

const sizeIn = ({ status, text }: Answer): number => {
  if (status >= 400 && status < 500 && !LATER.includes(status)) throw new Refused(`the server answered ${status}`);
  const { size } = JSON.parse(text) as { size?: unknown };
  if (status === 200 && Number.isSafeInteger(size) && (size as number) >= 0) return size as number;
  throw new Error(`the server answered ${status}`);
};

export const createPostOutput = (settings: StreamSettings, rank: number): PostOutput => {
  const agent = connections(settings.endpointFile);
  return {
    post: async (stream, { offset, body }) => {
      const options = {
        agent,
        method: "POST",
        path: `/api/v1/launches/${settings.launch}/output?stream=${stream}&rank=${rank}&offset=${offset}`,
        headers: {
          host: CLIENT_HOST,
          authorization: `Bearer ${settings.token}`,
          "content-type": "application/octet-stream",
          "content-length": body.length,
        },
      };
      return sizeIn(await ask(options, body));
    },
    close: () => agent.destroy(),
  };
};
