import { randomUUID } from "node:crypto";
import { join, sep } from "node:path";
import { hostname } from "node:os";
import type { Caller } from "../../api/caller.ts";
import { nameOf } from "../../api/caller.ts";
import type { LaunchView } from "../../api/launch-schemas.ts";
import type { LaunchService } from "../../api/launch-service.ts";
import { type LaunchSpec, buildLaunch, readLaunchBody } from "../../batch/launch-spec.ts";
import { type LaunchPlan, planLaunch } from "../../batch/plan.ts";
import type { UserFacts } from "../../batch/runas-list.ts";
import { settingsOf } from "../../batch/settings.ts";
import { type ClustersConfig, clusterNamed } from "../../config/clusters-file.ts";
import { type Launch, isFinalLaunch } from "../../core/launch.ts";
import { SlipwayError } from "../../errors.ts";
import type { Reachable } from "../../protocol/dial-server.ts";
import { sameSecret } from "../../protocol/token.ts";
import { createCommands } from "../../providers/commands.ts";
import type { Engine } from "../engine.ts";
import { isoTime } from "../views.ts";
import { type LaunchCluster, createLaunchCluster } from "./cluster.ts";
import { becomeUser, createIdentity, ownUser } from "./identity.ts";
import { createOutputStore } from "./output.ts";
import { type Published, endpointFileOf, publish, withdraw } from "./publish.ts";
import { checkSharedRoot, sharedRootFault } from "./shared-roots.ts";
import { createStorage } from "./storage.ts";
import { hashOf, loadUserTokens, newToken } from "./tokens.ts";
import { launchView } from "./views.ts";
import { createWatcher } from "./watcher.ts";

/** The launcher as the API sees it: one batch job from its description to its clean-up. */

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
  /** The doors are open: jobs may be told where. Adopts what servers before this one launched. */
  start(): Promise<void>;
  readonly live: number;
  close(): Promise<void>;
}

interface Prepared {
  readonly cluster: LaunchCluster;
  readonly spec: LaunchSpec;
  readonly plan: LaunchPlan;
  readonly user: UserFacts;
  readonly uuid: string;
  readonly token: string;
}

const STREAM_FILE = "stream.json";

export const createLaunches = async (options: LaunchesOptions): Promise<Launches> => {
  const { engine, home, homeHash, log } = options;
  const { state } = engine;
  const own = ownUser();
  const run = createCommands({ become: becomeUser });
  const identity = createIdentity(run);
  const storage = createStorage(run, homeHash);
  const output = createOutputStore(join(home, "launches"));
  const tokens = await loadUserTokens(home);
  const jobs = join(home, "jobs");
  const clusters = new Map<string, LaunchCluster>();
  for (const config of options.clusters.clusters.values())
    if (config.type === "slurm" || config.type === "pbs")
      clusters.set(config.name, createLaunchCluster(config, config.type, settingsOf(config), jobs));
  const published = new Map<string, Promise<Published>>();
  const inFlight = new Map<string | symbol, Promise<Launch>>();
  const watcher = createWatcher({ engine, clusters, storage, output, log });

  const publishTo = (root: string): Promise<Published> => {
    let found = published.get(root);
    if (found === undefined) {
      found = publish(root, homeHash, join(options.bundles, "agent.js"), options.endpoint());
      found.catch(() => published.delete(root));
      published.set(root, found);
    }
    return found;
  };

  const view = (launch: Launch): LaunchView => launchView(launch, own, output.sizes(launch.id));

  const isFor = (caller: Caller, launch: Launch): boolean =>
    caller.kind === "admin" ||
    (caller.kind === "user" && caller.user === (launch.user === "" ? own : launch.user)) ||
    (caller.kind === "job" && caller.launch === launch.id);

  const find = (caller: Caller, id: number): Launch => {
    const launch = state.launches.get(id);
    if (launch === undefined || !isFor(caller, launch)) throw new SlipwayError("no-such-launch", { launch: id });
    return launch;
  };

  const clusterFor = (name: string | undefined): LaunchCluster => {
    const config = clusterNamed(options.clusters, name);
    const found = clusters.get(config.name);
    if (found !== undefined) return found;
    throw new SlipwayError("bad-value", {
      where: "launch",
      key: "cluster",
      detail: `${config.name} is of type ${config.type}; jobs are launched through slurm or pbs`,
      remedy: `Name another cluster${clusters.size === 0 ? "; clusters.yaml declares none" : `: ${[...clusters.keys()].join(", ")}`}.`,
    });
  };

  /** Everything up to the point where something is written: mistakes end here. */
  const prepare = async (caller: Caller, document: unknown): Promise<Prepared> => {
    const read = readLaunchBody(document);
    const spec = buildLaunch(read);
    const cluster = clusterFor(spec.cluster);
    const user = await identity.userFor(caller, spec.user, cluster.settings.sudoAuthorized);
    if (user.name !== own && (cluster.settings.storageRoot === undefined || `${cluster.root}/`.startsWith(home + sep)))
      throw new SlipwayError("user-refused", {
        user: user.name,
        detail: "job directories would be in the server's own home",
        remedy: `Set job_storage_root of ${cluster.config.name} in clusters.yaml to a directory that all users and nodes reach.`,
      });
    const fault = user.name === own ? undefined : await sharedRootFault(cluster.root);
    if (fault !== undefined) {
      const detail = `job_storage_root of ${cluster.config.name}: ${fault.detail}`;
      throw new SlipwayError("user-refused", { user: user.name, detail, remedy: fault.remedy });
    }
    const uuid = read.value.uuid ?? randomUUID();
    const directory = join(cluster.root, uuid.replaceAll("-", "").toLowerCase());
    const facts = await cluster.facts(spec);
    const streamer = spec.streamLogs ? await streamerFor(cluster, directory) : {};
    const plan = planLaunch({
      spec,
      settings: cluster.settings,
      queues: cluster.config.queues,
      facts,
      id: uuid,
      directory,
      searchPath: await cluster.searchPath(),
      ...streamer,
    });
    return { cluster, spec, plan, user, uuid, token: newToken() };
  };

  const streamerFor = async (cluster: LaunchCluster, directory: string): Promise<{ streamer: readonly string[] }> => {
    const { bundle } = await publishTo(cluster.root).catch((error: unknown) => {
      throw new SlipwayError("launch-failed", {
        detail: `${cluster.root}: ${(error as Error).message}`,
        remedy: "Look at job_storage_root in clusters.yaml.",
      });
    });
    return { streamer: [process.execPath, bundle, "--stream", join(directory, STREAM_FILE), "--"] };
  };

  const begin = async ({ cluster, spec, plan, user, uuid, token }: Prepared): Promise<Launch> => {
    const id = reserve();
    const isOthers = user.name !== own;
    const { directory, ...files } = plan.paths;
    const stream = {
      launch: id,
      endpointFile: endpointFileOf(cluster.root, homeHash),
      token,
    };
    await storage.make({
      directory,
      directories: plan.directories,
      files: [
        ...plan.files,
        { path: STREAM_FILE, content: `${JSON.stringify(stream)}\n`, encoding: "utf8", mode: 0o600 },
      ],
      ...(isOthers ? { owner: user } : {}),
    });
    const lsn = engine.commit({
      type: "launch.requested",
      at: engine.clock(),
      launch: id,
      uuid,
      cluster: cluster.config.name,
      user: isOthers ? user.name : "",
      jobName: plan.jobName,
      directory,
      files: { ...files, options: plan.submitOptions },
      tokenHash: hashOf(token),
      about: {
        name: spec.name,
        type: spec.type,
        pool: plan.pool.name,
        slots: plan.sizing.slots,
        nodes: plan.sizing.nodes.max,
        image: plan.image ?? "",
        command: spec.command.slice(0, 100).map((word) => word.slice(0, 1000)),
        notes: plan.notes,
      },
    });
    await engine.whenDurable(lsn);
    const launch = state.launches.get(id)!;
    await watcher.submit(launch);
    await engine.whenDurable();
    return launch;
  };

  /** Numbers of launches that are being staged, and so are not in the state yet. */
  let reserved = 0;
  const reserve = (): number => {
    reserved = Math.max(reserved + 1, state.nextLaunch);
    return reserved;
  };

  const launch = async (caller: Caller, document: unknown): Promise<LaunchView> => {
    options.mayTake();
    const given = (document as { uuid?: unknown } | null)?.uuid;
    const uuid = typeof given === "string" ? given : undefined;
    // a repeated request is the same launch, also while the first one is being answered
    const before =
      uuid === undefined ? undefined : (inFlight.get(uuid) ?? state.launches.get(state.launchByUuid.get(uuid) ?? 0));
    if (before !== undefined) return view(find(caller, (await before).id));
    const work = prepare(caller, document).then(begin);
    const key = uuid ?? Symbol("launch");
    inFlight.set(key, work);
    try {
      return view(await work);
    } finally {
      inFlight.delete(key);
    }
  };

  async function* watch(caller: Caller, id: number, signal: AbortSignal): AsyncGenerator<LaunchView> {
    let last = "";
    let wake = (): void => undefined;
    const leave = watcher.watch(() => wake());
    try {
      for (;;) {
        const found = find(caller, id);
        const isOver = watcher.isOver(found);
        if (isOver) await engine.whenDurable();
        const { output: _output, ...facts } = view(found);
        const text = JSON.stringify(facts);
        // the end is told when its logs are gathered
        if (text !== last && (isOver || !isFinalLaunch(found.state))) yield view(found);
        last = text;
        if (isOver || signal.aborted) return;
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, 1000);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
          signal.addEventListener("abort", () => wake(), { once: true });
        });
      }
    } finally {
      leave();
    }
  }

  return {
    launch,
    preview: async (caller, document) => {
      const { cluster, plan, user } = await prepare(caller, document);
      const script = plan.files.find(({ path }) => join(plan.paths.directory, path) === plan.paths.script);
      const words = [...plan.submitOptions, plan.paths.script];
      return {
        script: script?.content ?? "",
        submit: [...(await cluster.submission(words, user.name === own ? undefined : user.name))],
        warnings: [...plan.notes],
      };
    },
    list: (caller, { state: wanted, limit }) =>
      [...state.launches.values()]
        .toReversed()
        .filter((each) => isFor(caller, each) && (wanted === undefined || each.state === wanted))
        .slice(0, limit)
        .map(view),
    show: async (caller, id, fresh) => {
      const found = find(caller, id);
      if (fresh && !isFinalLaunch(found.state)) {
        await watcher.look(found.cluster, id);
        await engine.whenDurable();
      }
      return view(found);
    },
    watch,
    async *logs(caller, id, { stream, follow, signal }) {
      const found = find(caller, id);
      const leave = follow ? watcher.watch(() => undefined) : undefined;
      try {
        yield* output.read(id, stream, { files: found.files, follow, signal, isOver: () => watcher.isOver(found) });
      } finally {
        leave?.();
      }
    },
    cancel: async (caller, id) => {
      options.mayChange();
      const found = find(caller, id);
      if (isFinalLaunch(found.state)) return view(found);
      if (found.cancelAsked === 0) {
        engine.commit({ type: "launch.changed", at: engine.clock(), launch: id, cancelBy: nameOf(caller) });
        await engine.whenDurable();
      }
      await watcher.cancel(found);
      return view(found);
    },
    clean: async (caller, id) => {
      options.mayChange();
      const found = find(caller, id);
      if (!watcher.isOver(found)) throw new SlipwayError("launch-active", { launch: id });
      await watcher.clean(found);
      await output.remove(id);
      await engine.whenDurable();
      return view(found);
    },
    receive: async (caller, id, piece, body) => {
      const found = find(caller, id);
      // what comes after the job's own files were gathered is in them
      if (watcher.isOver(found)) throw new SlipwayError("no-such-launch", { launch: id });
      return output.receive(id, piece, body);
    },
    callerOf: (token) => {
      const hash = hashOf(token);
      const user = tokens.userOf(hash);
      if (user !== undefined) return { kind: "user", user };
      for (const each of state.launches.values())
        if (!isFinalLaunch(each.state) && sameSecret(hash, each.tokenHash)) return { kind: "job", launch: each.id };
      return undefined;
    },
    tokens: async () => (await tokens.list()).map(({ user, made }) => ({ user, made: isoTime(made) })),
    addToken: async (user) => {
      const facts = await identity.factsOf(user);
      if (facts.uid === 0)
        throw new SlipwayError("user-refused", { user, detail: "root launches nothing", remedy: "Name another user." });
      if (user !== own) for (const { config } of clusters.values()) await checkSharedRoot(config);
      const [shared] = [...clusters.values()].filter(({ settings }) => settings.storageRoot !== undefined);
      const { addresses, port, keyPin } = options.endpoint();
      return {
        user,
        token: await tokens.add(user),
        endpointFile: shared === undefined ? null : (await publishTo(shared.root)).endpointFile,
        endpoint: { host: hostname(), addresses: [...addresses], port, keyPin },
      };
    },
    removeToken: (user) => tokens.remove(user),
    start: async () => {
      for (const root of new Set([...clusters.values()].map((cluster) => cluster.root))) {
        const used = [...state.launches.values()].some(({ directory }) => directory.startsWith(`${root}/`));
        const isShared = root !== jobs;
        if (used || isShared)
          await publishTo(root).catch((error: unknown) => log(`${root}: ${(error as Error).message}`));
        const known = new Set([...state.launches.values()].map(({ directory }) => directory));
        await storage.sweep(root, (directory) => known.has(directory)).catch((error: unknown) => log(String(error)));
      }
    },
    get live() {
      return [...state.launches.values()].filter((each) => !isFinalLaunch(each.state)).length + inFlight.size;
    },
    close: async () => {
      watcher.close();
      for (const root of published.keys()) await withdraw(root, homeHash).catch(() => undefined);
    },
  };
};
