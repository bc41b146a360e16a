import { createHash } from "node:crypto";
import { hostname, tmpdir, uptime } from "node:os";
import { join } from "node:path";
import { createApi } from "../api/app.ts";
import type { ServerView } from "../api/schemas.ts";
import { type ClusterConfig, type ClustersConfig, clusterNamed, loadClusters } from "../config/clusters-file.ts";
import { formatSize } from "../core/quantities.ts";
import type { Resources } from "../core/resources.ts";
import { isFinalPilot } from "../core/states.ts";
import { SlipwayError } from "../errors.ts";
import { isLoopback } from "../protocol/endpoint.ts";
import { VERSION } from "../protocol/package-version.ts";
import { createCommands } from "../providers/commands.ts";
import { isManaged } from "../providers/registry.ts";
import { DEFAULT_PREFETCH } from "../scheduler/capacity.ts";
import { createScheduler } from "../scheduler/scheduler.ts";
import { createAgents } from "../agent-links/agents.ts";
import { readArchiveSync } from "./archive/archive.ts";
import { replayState } from "./archive/compact.ts";
import { clockAtStart, createClock } from "./clock.ts";
import { checkCluster } from "./clusters/check.ts";
import { createCompactor } from "./compactor.ts";
import { createEngine } from "./engine.ts";
import { createFeed } from "./feed.ts";
import { createFleets } from "./fleets/create-fleets.ts";
import { largestOf } from "./fleets/largest.ts";
import { createPilots } from "./fleets/pilots.ts";
import { simulatedNode } from "./fleets/simulated-fleets.ts";
import {
  claimHome,
  loadKeys,
  prepareHome,
  removeEndpoint,
  removeRuntimeDirectory,
  runtimeDirectory,
  socketPath,
  writeEndpoint,
} from "./home/index.ts";
import { openDoors } from "./http.ts";
import { type Journal, RESERVE_BYTES, openJournal, openReserve, reserveFile } from "./journal/index.ts";
import { createLaunches } from "./launches/launches.ts";
import { checkShared } from "./launches/shared-roots.ts";
import { type Listening, whereToListen } from "./listening.ts";
import type { Log } from "./logger.ts";
import { createPilotService } from "./pilot-service.ts";
import { createService } from "./service.ts";
import { createStrangers } from "./strangers.ts";
import { createSubmission } from "./submission.ts";

/** Puts a server together: claims the home, replays the journal, adopts what still runs, and opens its doors. */

export interface ServeOptions {
  readonly home: string;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly clusters?: string | undefined;
  readonly log: Log;
  /** Directory of the built files: the agent's bundle lies there. */
  readonly bundles: string;
  /** What local resources are when clusters.yaml does not say. */
  readonly detect: (scratch: string, declared: Resources) => Promise<Resources>;
}

export interface RunningServer {
  readonly url: string;
  readonly listening: Listening;
  readonly ended: Promise<number>;
  stop(now: boolean): void;
}

const scratchOf = (cluster: ClusterConfig): string => cluster.scratch ?? process.env["SLIPWAY_SCRATCH"] ?? tmpdir();

const outOfReserve = (left: number): string =>
  `the disk is full: the journal goes on in its reserve, ${formatSize(left)} of which is left`;

export const startServer = async (options: ServeOptions): Promise<RunningServer> => {
  const { log } = options;
  const { root: home } = await prepareHome(options.home);
  let exit: (status: number) => void = () => undefined;
  const ended = new Promise<number>((resolve) => {
    exit = resolve;
  });
  const claim = await claimHome(home, {
    onWait: ({ host, pid, ms }) =>
      log(`the home is held by pid ${pid} on ${host}; waiting ${ms / 1000} s to see whether it lives`),
  });
  claim.onLost((reason) => {
    log(`this server lost its home: ${reason}`);
    exit(3);
  });
  const clusters: ClustersConfig = loadClusters({ home, explicitPath: options.clusters });
  await checkShared(home, clusters);
  const keys = await loadKeys(home);
  for (const warning of keys.warnings) log(warning);
  const { keepHistory } = clusters;
  const { losses } = clusters.limits;
  let journal: Journal | undefined;
  const reserve = await openReserve({ disk: reserveFile(join(home, "journal", "reserve")), log });
  let feed = createFeed();
  const state = await replayState(
    home,
    async (replay) => {
      journal = await openJournal(
        { dir: join(home, "journal"), epoch: claim.epoch, fence: () => claim.fence(), keepHistory, reserve },
        replay,
      );
    },
    { losses, feed: () => (feed = createFeed()) },
  );
  if (journal === undefined) throw new SlipwayError("internal", { detail: "the journal did not open" });
  for (const warning of journal.warnings) log(warning);
  const theJournal = journal;
  // before any task can write, and in nobody's way
  void reserve.fill();

  const here = { bootId: claim.lease.bootId, uptimeMs: Math.round(uptime() * 1000) };
  const clock = createClock(clockAtStart(state, here));
  const scheduler = createScheduler(DEFAULT_PREFETCH, clusters.default);
  const engine = createEngine(state, scheduler, theJournal, clock, {
    losses,
    restore: (summary) => readArchiveSync(home, summary.file),
  });
  let stopping = false;
  let full: string | null = null;
  const started = new Date(clock()).toISOString();
  engine.listeners.committed = (event) => feed.committed(event);
  engine.commit({
    type: "server.started",
    at: clock(),
    epoch: claim.epoch,
    host: hostname(),
    pid: process.pid,
    version: VERSION,
    ...(here.bootId === "" ? {} : here),
  });

  // a journal of format 1 does not say which tasks were given up: decided here, once, for all later starts
  if (state.undecided > 0) engine.commit({ type: "losses.judged", at: clock(), limit: state.lossLimit });

  const largest = new Map<string, Resources>();
  for (const cluster of clusters.clusters.values())
    if (cluster.type === "local")
      largest.set(cluster.name, await options.detect(scratchOf(cluster), cluster.resources));
    else if (cluster.type === "simulated")
      largest.set(cluster.name, await options.detect(scratchOf(cluster), simulatedNode(cluster)));
    else if (isManaged(cluster.type)) largest.set(cluster.name, largestOf(cluster));

  const agents = createAgents({
    engine,
    token: keys.agentToken,
    limits: clusters.limits,
    clusterOf: ({ pilot, cluster, queue }) => {
      const known = state.pilots.get(pilot);
      return {
        cluster: known?.cluster ?? cluster ?? clusters.default,
        queue: known?.queue ?? queue ?? "",
        endsAt: Infinity,
      };
    },
    onJoin: (agent, pilot) => pilots.joined(agent, pilot),
    onSuspect: () => pilots.look(),
    onGone: () => pilots.look(),
    log,
  });
  agents.adopt();
  engine.listeners.assigned = (agent, parts) => agents.assign(agent, parts);
  engine.listeners.stop = (agent, run, row, attempt) => agents.stop(agent, run, row, attempt);
  engine.listeners.gangOver = (gang) => agents.gangOver(gang);
  engine.listeners.takeBack = (agent, count) => agents.takeBack(agent, count);
  engine.listeners.mayPlace = () => !stopping && full === null;
  engine.listeners.attemptOver = (run, row, attempt) => feed.attemptOver(run, row, attempt, clock);
  engine.listeners.taskEnded = (run, row) => feed.taskEnded(run, row, clock);
  engine.listeners.tasksCanceled = (run, _from, count) =>
    feed.publish({ event: "tasks.canceled", run: run.id, detail: { tasks: count } }, clock());
  engine.listeners.runFinished = (run) => {
    feed.publish({ event: "run.finished", run: run.id }, clock());
    engine.afterDurable(() => agents.forget(run.id));
  };

  const homeHash = createHash("sha256").update(home).digest("hex").slice(0, 8);
  const fleets = createFleets({
    home,
    bundles: options.bundles,
    clusters,
    largest,
    scratchOf,
    living: () => [...state.pilots.values()].filter((pilot) => pilot.nativeId !== "" && !isFinalPilot(pilot.state)),
  });
  const pilots = createPilots({
    home,
    prefix: `slipway-${homeHash}`,
    fleets,
    engine,
    agents,
    log,
    defaultCluster: clusters.default,
    onWaiting: (pilot, text) => feed.publish({ event: "pilot.waiting", detail: { pilot, manager: text } }, clock()),
  });
  // a first task finds its pilot at once, not at the next period
  const place = engine.listeners.committed;
  engine.listeners.committed = (event, lsn) => {
    place(event, lsn);
    if (event.type === "run.committed") setImmediate(() => pilots.expectWork());
  };

  const compactor = createCompactor({
    home,
    journal: theJournal,
    state,
    keepHistory,
    command: (upTo) => [
      process.execPath,
      join(options.bundles, "server.js"),
      "compact-child",
      "--home",
      home,
      "--up-to",
      upTo,
    ],
    log,
  });

  const mayTake = (): void => {
    if (stopping) throw new SlipwayError("stopping");
    if (full !== null) throw new SlipwayError("journal-full", { detail: full, home });
  };
  const mayChange = (): void => {
    if (full !== null) throw new SlipwayError("journal-full", { detail: full, home });
  };
  const about = (): ServerView => ({
    pid: process.pid,
    host: hostname(),
    url,
    started,
    version: VERSION,
    home,
    epoch: claim.epoch,
    state: full !== null ? "journal-full" : stopping ? "stopping" : "running",
    detail: full ?? (reserve.lent ? outOfReserve(reserve.bytes) : null),
    journalReserve: { bytes: reserve.bytes, of: RESERVE_BYTES, lent: reserve.lent },
    listens: listening,
  });

  const service = createService({
    engine,
    agents,
    pilots,
    pilotService: createPilotService({ engine, agents, pilots, fleets, clusters, mayTake }),
    feed,
    home,
    clusters,
    largest,
    about,
    blocked: () => full ?? (stopping ? "the server is stopping" : null),
    mayChange,
    launches: () => launches.live,
    submit: createSubmission({ engine, journal: theJournal, home, clusters, largest, mayTake }),
    checkCluster: (name) =>
      checkCluster({
        home,
        bundles: options.bundles,
        // as the file is now: what is proved is what the next start reads
        cluster: clusterNamed(loadClusters({ home, explicitPath: options.clusters }), name),
        reachable: !isLoopback(listening.host),
        addresses: doors.addresses,
        run: createCommands(),
      }),
    stop: (now) => stop(now),
    compact: () => compactor.compact(),
  });

  const launches = await createLaunches({
    engine,
    home,
    homeHash,
    clusters,
    bundles: options.bundles,
    endpoint: () => ({ host: hostname(), addresses: doors.addresses, port: doors.port, keyPin: keys.pin }),
    mayTake,
    mayChange,
    log,
  });
  const listening = whereToListen({ asked: options.host, clusters: clusters.clusters, state, hostname: hostname() });
  const strangers = createStrangers();
  const api = createApi({
    service,
    launches,
    token: keys.clientToken,
    version: VERSION,
    clock,
    onKnown: (connection) => strangers.known(connection),
    log,
  });
  const runtime = await runtimeDirectory(home);
  const socket = socketPath(runtime, "api.sock");
  const doors = await openDoors({
    api,
    socketPath: socket,
    host: listening.host,
    port: options.port ?? 0,
    key: keys.keyPem,
    cert: keys.certPem,
    strangers,
    onAgent: (connection) => agents.accept(connection, () => strangers.known(connection)),
  });
  const far = [...clusters.clusters.values()].filter(({ type }) => isManaged(type)).map(({ name }) => name);
  if (far.length > 0 && isLoopback(listening.host))
    log(`agents of ${far.join(", ")} cannot reach ${listening.host}: start the server without --host, or with another`);
  const [address = listening.host] = doors.addresses;
  const url = `https://${address.includes(":") ? `[${address}]` : address}:${doors.port}`;

  theJournal.onState((to, detail) => {
    log(`the journal is ${to}: ${detail.reason}`);
    full = to === "full" ? detail.reason : null;
    agents.hold(to === "full");
    if (detail.fatal) exit(3);
    if (to === "ok") engine.schedulePass();
  });

  await engine.whenDurable();
  engine.rebuildQueues();
  await writeEndpoint(home, {
    pid: process.pid,
    host: hostname(),
    addresses: doors.addresses,
    port: doors.port,
    socket,
    keyPin: keys.pin,
    epoch: claim.epoch,
    started,
    version: VERSION,
  });
  await claim.setAddress(url);
  await launches.start();
  log(`it listens on ${listening.host}: ${listening.reason}`);
  log(`epoch ${claim.epoch} at ${url}: ${state.runs.size} runs in memory, ${state.archived.size} in the archive`);

  const stop = (now: boolean): void => {
    if (stopping && !now) return;
    stopping = true;
    log(now ? "stopping now" : "stopping");
    void pilots.stop(now).then(() => finish(0));
  };

  let finishing = false;
  const finish = async (status: number): Promise<void> => {
    if (finishing) return;
    finishing = true;
    pilots.close();
    await launches.close();
    await compactor.close();
    await removeEndpoint(home, claim.epoch);
    await doors.close();
    await removeRuntimeDirectory(runtime);
    agents.close();
    await theJournal.close().catch((error: unknown) => log(`the journal did not close: ${(error as Error).message}`));
    await reserve.close();
    await claim.release();
    log("stopped");
    exit(status);
  };

  return { url, listening, ended, stop };
};
