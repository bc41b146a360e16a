import { rm } from "node:fs/promises";
import { replaceFile } from "../replace-file.ts";
import { type Endpoint, endpointPath, readEndpoint } from "./endpoint.ts";

/** What the server does with the file that says where it is; all others only read it (endpoint.ts). */

export const writeEndpoint = (home: string, endpoint: Endpoint): Promise<void> =>
  replaceFile(endpointPath(home), `${JSON.stringify(endpoint)}\n`, { sync: false });

/** Removes the file if it is still this server's. */
export const removeEndpoint = async (home: string, epoch: number): Promise<void> => {
  if ((await readEndpoint(home))?.epoch === epoch) await rm(endpointPath(home), { force: true });
};
