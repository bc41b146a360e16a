import { access } from "node:fs/promises";
import { settingsOf } from "../plan/settings.ts";
import type { ClusterConfig, ClustersConfig } from "../../config/clusters-file.ts";
import { type Fault, storageRootError, storageRootFault } from "../../config/storage-root.ts";
import { ownUser } from "./identity.ts";
import { loadUserTokens } from "./tokens.ts";

/** Whether the directories that hold other users' jobs can be trusted. */

/** What is wrong with a cluster's job_storage_root for jobs of users other than the server's own. */
export const sharedRootFault = async (root: string): Promise<Fault | undefined> => {
  const uid = process.getuid?.() ?? 0;
  const fault = await storageRootFault(root, uid);
  if (fault !== undefined || uid === 0) return fault;
  const isThere = await access(root).then(
    () => true,
    () => false,
  );
  // if the server's account made it, its parent would belong to that account too, or would be one that everybody can
  // write to
  return isThere
    ? undefined
    : { detail: `${root} does not exist`, remedy: `Let root create it: install -d -o ${ownUser()} -m 0755 ${root}` };
};

/** Throws if users other than the server's own may launch on a cluster whose directory is unsuitable for that. */
export const checkSharedRoot = async (cluster: ClusterConfig): Promise<void> => {
  const { storageRoot, sudoAuthorized } = settingsOf(cluster);
  if (storageRoot === undefined || sudoAuthorized.length === 0) return;
  const fault = await sharedRootFault(storageRoot);
  if (fault !== undefined) throw storageRootError(cluster.name, fault);
};

/**
 * At start: a shared server, one whose sudo_authorized names users or for which somebody else has a token, does not
 * start if one of its clusters is unsuitable. A server that only its own user uses may keep jobs anywhere.
 */
export const checkShared = async (home: string, { clusters }: ClustersConfig): Promise<void> => {
  const own = ownUser();
  const isShared = (await (await loadUserTokens(home)).list()).some(({ user }) => user !== own);
  for (const cluster of clusters.values())
    if (cluster.manager.launch !== undefined && (isShared || cluster.launch.sudo_authorized !== undefined))
      await checkSharedRoot(cluster);
};
