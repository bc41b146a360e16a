import { readFile } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** Half of what the same costs with promises all the way: an agent without a server reads again and again. */
const readText = promisify(readFile);

/** Where to find the server of a home: a file that the server writes when it is ready and removes when it ends. */
export interface Endpoint {
  readonly pid: number;
  readonly host: string;
  /** For agents and remote clients to try in turn. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** The unix socket for clients on the same machine. */
  readonly socket: string;
  /** The one for agents; servers of an earlier version have none. */
  readonly agentSocket?: string;
  /** sha256 of the server's public key (SPKI), base64. */
  readonly keyPin: string;
  readonly epoch: number;
  readonly started: string;
  readonly version: string;
}

/** Whether the server's pid and its sockets mean anything here. */
export const isHere = ({ host }: Pick<Endpoint, "host">): boolean => host === hostname();

/** Whether an address leads only to the machine that uses it. */
export const isLoopback = (address: string): boolean => /^(127\.|::1$|localhost$)/.test(address);

/** How to make a server reachable that listens only on its own machine. */
export const OPEN_TO_OTHERS = "start it with `slipway up --host ADDRESS` for other machines";

export const endpointPath = (home: string): string => join(home, "server.json");

const isEndpoint = (value: unknown): value is Endpoint => {
  const endpoint = value as Partial<Endpoint> | null;
  return (
    typeof endpoint === "object" &&
    endpoint !== null &&
    typeof endpoint.port === "number" &&
    typeof endpoint.socket === "string" &&
    (endpoint.agentSocket === undefined || typeof endpoint.agentSocket === "string") &&
    typeof endpoint.keyPin === "string" &&
    typeof endpoint.epoch === "number" &&
    Array.isArray(endpoint.addresses)
  );
};

export const readEndpoint = (home: string): Promise<Endpoint | undefined> => readEndpointFile(endpointPath(home));

/** Undefined when there is no file, or when it does not hold an endpoint. */
export const readEndpointFile = async (path: string): Promise<Endpoint | undefined> => {
  let text: string;
  try {
    text = await readText(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    return isEndpoint(value) ? value : undefined;
  } catch {
    return undefined;
  }
};
