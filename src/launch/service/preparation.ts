import { randomUUID } from "node:crypto";
import { join, sep } from "node:path";
import type { Caller } from "../../api/caller.ts";
import { type LaunchSpec, buildLaunch, readLaunchBody } from "../plan/launch-spec.ts";
import { type LaunchPlan, planLaunch } from "../plan/plan.ts";
import type { UserFacts } from "../plan/runas-list.ts";
import { type ClustersConfig, clusterNamed } from "../../config/clusters-file.ts";
import { SlipwayError } from "../../errors.ts";
import type { LaunchCluster } from "./cluster.ts";
import type { Identity } from "./identity.ts";
import type { Publications } from "./publish.ts";
import { sharedRootFault } from "./shared-roots.ts";
import { newToken } from "./tokens.ts";

/** A launch before anything is written: mistakes end here. */
export interface Prepared {
  readonly cluster: LaunchCluster;
  readonly spec: LaunchSpec;
  readonly plan: LaunchPlan;
  readonly user: UserFacts;
  readonly uuid: string;
  /** Gives access to the job's own log. */
  readonly token: string;
}

export type Prepare = (caller: Caller, document: unknown) => Promise<Prepared>;

export interface PreparationOptions {
  readonly config: ClustersConfig;
  readonly clusters: ReadonlyMap<string, LaunchCluster>;
  readonly identity: Identity;
  readonly publications: Publications;
  readonly home: string;
  /** The server's own user. */
  readonly own: string;
}

/** In the job's directory: what its ranks need to send their output. */
export const STREAM_FILE = "stream.json";

export const createPreparation = (options: PreparationOptions): Prepare => {
  const { config, clusters, identity, publications, home, own } = options;

  const clusterFor = (name: string | undefined): LaunchCluster => {
    const named = clusterNamed(config, name);
    const found = clusters.get(named.name);
    if (found !== undefined) return found;
    throw new SlipwayError("bad-value", {
      where: "launch",
      key: "cluster",
      detail: `${named.name} is of type ${named.type}; jobs are launched through slurm or pbs`,
      remedy: `Name another cluster${clusters.size === 0 ? "; clusters.yaml declares none" : `: ${[...clusters.keys()].join(", ")}`}.`,
    });
  };

  /** Another user's directory must be where that user can reach it and nobody else can change it. */
  const checkRoot = async ({ config: { name }, root, settings }: LaunchCluster, user: string): Promise<void> => {
    if (settings.storageRoot === undefined || `${root}/`.startsWith(home + sep))
      throw new SlipwayError("user-refused", {
        user,
        detail: "job directories would be in the server's own home",
        remedy: `Set job_storage_root of ${name} in clusters.yaml to a directory that all users and nodes can reach.`,
      });
    const fault = await sharedRootFault(root);
    if (fault === undefined) return;
    const detail = `job_storage_root of ${name}: ${fault.detail}`;
    throw new SlipwayError("user-refused", { user, detail, remedy: fault.remedy });
  };

  const streamerFor = async ({ root }: LaunchCluster, directory: string): Promise<readonly string[]> => {
    const { bundle } = await publications.under(root).catch((error: unknown) => {
      throw new SlipwayError("launch-failed", {
        detail: `${root}: ${(error as Error).message}`,
        remedy: "Look at job_storage_root in clusters.yaml.",
      });
    });
    return [process.execPath, bundle, "--stream", join(directory, STREAM_FILE), "--"];
  };

  return async (caller, document) => {
    const read = readLaunchBody(document);
    const spec = buildLaunch(read);
    const cluster = clusterFor(spec.cluster);
    const user = await identity.userFor(caller, spec.user, cluster.settings.sudoAuthorized);
    if (user.name !== own) await checkRoot(cluster, user.name);
    const uuid = read.value.uuid ?? randomUUID();
    const directory = join(cluster.root, uuid.replaceAll("-", "").toLowerCase());
    const facts = await cluster.facts(spec);
    const plan = planLaunch({
      spec,
      settings: cluster.settings,
      queues: cluster.config.queues,
      facts,
      id: uuid,
      directory,
      ...(spec.streamLogs ? { streamer: await streamerFor(cluster, directory) } : {}),
      searchPath: await cluster.searchPath(),
    });
    return { cluster, spec, plan, user, uuid, token: newToken() };
  };
};
