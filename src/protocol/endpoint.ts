import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "../errors.ts";

/** How to reach the server of a home. Written by the server, read by clients and agents; always whole (temp + rename). */
export interface Endpoint {
  readonly pid: number;
  readonly host: string;
  /** Names and addresses under which the port may be reached, the likeliest first. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** A unix socket, for clients on the same host. */
  readonly socket: string;
  /** SHA-256 of the server's public key (SPKI), base64: what makes a server the right one. */
  readonly keyPin: string;
  /** A reader that has seen a higher one knows that this file is old. */
  readonly epoch: number;
  /** ISO time, for people. */
  readonly started: string;
  readonly version: string;
}

export const ENDPOINT_NAME = "server.json";
export const endpointPath = (home: string): string => join(home, ENDPOINT_NAME);

/** Far above any real file; a larger one is not ours. */
const MAX_BYTES = 64 * 1024;

const isText = (value: unknown): value is string => typeof value === "string" && !value.includes("\0");
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const parse = (text: string): Endpoint | undefined => {
  let body: Record<string, unknown>;
  try {
    body = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
  if (typeof body !== "object" || body === null) return undefined;
  const { pid, host, addresses, port, socket, keyPin, epoch, started, version } = body;
  if (!isCount(pid) || !isCount(port) || port > 65_535 || !isCount(epoch)) return undefined;
  if (!isText(host) || !isText(socket) || !isText(keyPin) || !isText(started) || !isText(version)) return undefined;
  if (!Array.isArray(addresses) || !addresses.every(isText)) return undefined;
  return { pid, host, addresses, port, socket, keyPin, epoch, started, version };
};

/** The endpoint of a home, or undefined if no server has left one. Throws `home-unusable` if the file cannot be understood. */
export const readEndpoint = async (home: string): Promise<Endpoint | undefined> => {
  const path = endpointPath(home);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new SlipwayError(
      "home-unusable",
      { home, detail: `cannot read ${path}: ${(error as Error).message}` },
      error,
    );
  }
  const endpoint = text.length > MAX_BYTES ? undefined : parse(text);
  if (endpoint === undefined) throw new SlipwayError("home-unusable", { home, detail: `${path} is not understood` });
  return endpoint;
};
