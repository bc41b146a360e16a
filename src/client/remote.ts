import { readFile as readFileThen } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { NewToken } from "../api/launch-schemas.ts";
import type { Reachable } from "../protocol/dial-server.ts";
import { type Endpoint, readEndpoint } from "../protocol/endpoint.ts";

/** Not that of node:fs/promises, which takes longer to load than these files to read. */
const readFile = promisify(readFileThen);

/**
 * A server of somebody else: HOME/remote.json is what `slipway tokens add` gave out. The address in the file that it
 * names counts, which that server writes again at every start; if that cannot be read, the one it was made with.
 */
const readRemote = async (home: string): Promise<NewToken | undefined> => {
  try {
    const value = JSON.parse(await readFile(join(home, "remote.json"), "utf8")) as NewToken | null;
    return typeof value?.token === "string" && typeof value.endpoint?.port === "number" ? value : undefined;
  } catch {
    return undefined;
  }
};

const addressNow = async ({ endpointFile, endpoint }: NewToken): Promise<Reachable | undefined> => {
  if (endpointFile === null) return endpoint;
  try {
    return JSON.parse(await readFile(endpointFile, "utf8")) as Reachable;
  } catch (error) {
    // the directory is there and the file is not: that server does not run
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? undefined : endpoint;
  }
};

/** Where the server of a home is: this home's own, else the one that remote.json names. */
export const findEndpoint = async (home: string): Promise<Endpoint | undefined> => {
  const own = await readEndpoint(home);
  if (own !== undefined) return own;
  const remote = await readRemote(home);
  const address = remote === undefined ? undefined : await addressNow(remote);
  if (address === undefined) return undefined;
  return { ...address, pid: 0, socket: "", epoch: 0, started: "", version: "" };
};

export const readToken = async (home: string): Promise<string | undefined> => {
  try {
    return (await readFile(join(home, "keys", "client.token"), "utf8")).trim();
  } catch {
    // The unix socket needs none; elsewhere the server answers `unauthorized`, which says where the token is.
    return (await readRemote(home))?.token;
  }
};
