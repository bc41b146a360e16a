import { createHash } from "node:crypto";
import { chmod, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Reachable } from "../../protocol/dial-server.ts";
import { makeDirectory } from "../../home/files.ts";

/**
 * What jobs and other users need from a server, in a place where they can read it: the bundle that streams a rank's
 * output, and the server's current address. Neither is a secret; tokens are elsewhere.
 */

export interface Published {
  /** Absolute path of the bundle. */
  readonly bundle: string;
  readonly endpointFile: string;
}

const replace = async (path: string, content: string | Uint8Array): Promise<void> => {
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, content, { mode: 0o644 });
  // the umask of whoever started the server must not hide it
  await chmod(temporary, 0o644);
  await rename(temporary, path);
};

const openTo = async (directory: string): Promise<void> => {
  await makeDirectory(directory);
  await chmod(directory, 0o755);
};

export const endpointFileOf = (root: string, homeHash: string): string => join(root, `server-${homeHash}.json`);

/** Puts both under a cluster's storage root; running jobs keep an older server's bundle. */
const publish = async (
  root: string,
  homeHash: string,
  agentBundle: string,
  endpoint: Reachable,
): Promise<Published> => {
  const bytes = await readFile(agentBundle);
  const name = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  if ((await stat(root).catch(() => undefined)) === undefined) await openTo(root);
  const directory = join(root, "bundle");
  await openTo(directory);
  const bundle = join(directory, `agent-${name}.cjs`);
  if ((await stat(bundle).catch(() => undefined))?.size !== bytes.length) await replace(bundle, bytes);
  const endpointFile = endpointFileOf(root, homeHash);
  const { host, addresses, port, keyPin } = endpoint;
  await replace(endpointFile, `${JSON.stringify({ host, addresses, port, keyPin })}\n`);
  return { bundle, endpointFile };
};

export interface Publications {
  /** What is published under this root; published when first asked for. */
  under(root: string): Promise<Published>;
  /** Removes the server's address everywhere: it is no longer valid. */
  withdraw(): Promise<void>;
}

export interface PublicationsOptions {
  readonly homeHash: string;
  /** The bundle to publish. */
  readonly agentBundle: string;
  readonly endpoint: () => Reachable;
}

export const createPublications = ({ homeHash, agentBundle, endpoint }: PublicationsOptions): Publications => {
  const published = new Map<string, Promise<Published>>();
  return {
    under: (root) => {
      let found = published.get(root);
      if (found === undefined) {
        found = publish(root, homeHash, agentBundle, endpoint());
        found.catch(() => published.delete(root));
        published.set(root, found);
      }
      return found;
    },
    withdraw: async () => {
      for (const root of published.keys())
        await rm(endpointFileOf(root, homeHash), { force: true }).catch(() => undefined);
    },
  };
};
