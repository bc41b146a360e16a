import { join } from "node:path";
import type { LaunchService } from "../../api/launch-service.ts";
import { settingsOf } from "../plan/settings.ts";
import type { ClustersConfig } from "../../config/clusters-file.ts";
import { isFinalLaunch } from "../../core/launch.ts";
import type { Reachable } from "../../protocol/dial-server.ts";
import { createCommands } from "../../managers/commands.ts";
import { isLaunchManager } from "../../managers/managers.ts";
import type { Engine } from "../../server/engine.ts";
import { type LaunchCluster, createLaunchCluster } from "./cluster.ts";
import { becomeUser, createIdentity, ownUser } from "./identity.ts";
import { createIntake } from "./intake.ts";
import { createOutputStore } from "./output.ts";
import { createPreparation } from "./preparation.ts";
import { createPublications } from "./publish.ts";
import { createLaunchRequests } from "./requests.ts";
import { createStorage } from "./storage.ts";
import { loadUserTokens } from "./tokens.ts";
import { createUserAccess } from "./user-access.ts";
import { createWatcher } from "./watcher.ts";

/**
 * The launcher as the API sees it: one batch job from its description to its clean-up.
 *
 *   requests ─► preparation ─► intake ─► watcher ◄─► managers
 *                                           └─► output, storage
 */

export interface LaunchesOptions {
  readonly engine: Engine;
  readonly home: string;
  readonly homeHash: string;
  readonly clusters: ClustersConfig;
  /** Directory of the built files. */
  readonly bundles: string;
  readonly endpoint: () => Reachable;
  /** Throws when nothing new can be taken now. */
  readonly mayTake: () => void;
  readonly mayChange: () => void;
  readonly log: (text: string, facts?: object) => void;
}

export interface Launches extends LaunchService {
  /** The server is listening, so jobs may learn its address. Adopts what earlier servers launched. */
  start(): Promise<void>;
  readonly live: number;
  /** These clusters are others now, or new, or gone; jobs that live keep their directories. */
  change(names: Iterable<string>): void;
  close(): Promise<void>;
}

export const createLaunches = async (options: LaunchesOptions): Promise<Launches> => {
  const { engine, home, homeHash, log, mayTake, mayChange, endpoint } = options;
  const { state } = engine;
  const own = ownUser();
  const run = createCommands({ become: becomeUser });
  const identity = createIdentity(run);
  const storage = createStorage(run, homeHash);
  const output = createOutputStore(join(home, "launches"));
  const tokens = await loadUserTokens(home);
  const jobs = join(home, "jobs");
  const clusters = new Map<string, LaunchCluster>();
  const change = (names: Iterable<string>): void => {
    for (const name of names) {
      const config = options.clusters.clusters.get(name);
      if (config === undefined || !isLaunchManager(config.type)) clusters.delete(name);
      else clusters.set(name, createLaunchCluster(config, config.type, settingsOf(config), jobs));
    }
  };
  change(options.clusters.clusters.keys());
  const publications = createPublications({ homeHash, agentBundle: join(options.bundles, "agent.cjs"), endpoint });
  const watcher = createWatcher({ engine, clusters, storage, output, log });
  const prepare = createPreparation({ config: options.clusters, clusters, identity, publications, home, own });
  const intake = createIntake({ engine, storage, homeHash, own, prepare, submit: watcher.submit });

  return {
    ...createLaunchRequests({ engine, prepare, intake, watcher, output, own, mayTake, mayChange }),
    ...createUserAccess({ state, tokens, identity, clusters, publications, endpoint, own }),
    start: async () => {
      for (const root of new Set([...clusters.values()].map((cluster) => cluster.root))) {
        const used = [...state.launches.values()].some(({ directory }) => directory.startsWith(`${root}/`));
        const isShared = root !== jobs;
        if (used || isShared)
          await publications.under(root).catch((error: unknown) => log(`${root}: ${(error as Error).message}`));
        const known = new Set([...state.launches.values()].map(({ directory }) => directory));
        await storage.sweep(root, (directory) => known.has(directory)).catch((error: unknown) => log(String(error)));
      }
    },
    change,
    get live() {
      return [...state.launches.values()].filter((each) => !isFinalLaunch(each.state)).length + intake.size;
    },
    close: async () => {
      watcher.close();
      await publications.withdraw();
    },
  };
};
