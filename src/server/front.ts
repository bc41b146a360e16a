import { hostname } from "node:os";
import { join } from "node:path";
import { type ApiOptions, createApi } from "../api/app.ts";
import { overviewOf } from "../api/overview.ts";
import type { CheckView, ServerView } from "../api/schemas.ts";
import { clusterNamed } from "../config/clusters-file.ts";
import { formatSize } from "../core/quantities.ts";
import { SlipwayError } from "../errors.ts";
import { isLoopback } from "../protocol/endpoint.ts";
import { VERSION } from "../protocol/package-version.ts";
import { createCommands } from "../managers/commands.ts";
import { checkCluster } from "../check/check.ts";
import { createPlaces } from "../check/places.ts";
import { runtimeDirectory, socketPath } from "../home/index.ts";
import { createEntrance } from "../doors/entrance.ts";
import { openSessionBook } from "../doors/session-book.ts";
import { type Doors, openDoors } from "../doors/http.ts";
import { createPage } from "../doors/page.ts";
import type { Counts } from "./counts.ts";
import type { Inside } from "./inside.ts";
import { RESERVE_BYTES, type Reserve } from "../journal/index.ts";
import { type Launches, createLaunches } from "../launch/service/launches.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { type Listening, whereToListen } from "../doors/listening.ts";
import type { Log } from "./logger.ts";
import type { Stored, Home } from "./open-home.ts";
import { createLive } from "./live/live.ts";
import { type Numbers, createNumbers } from "./numbers.ts";
import { type Reload, createReload } from "./reload.ts";
import { createSeries } from "./series.ts";
import { createPilotService } from "./service/pilot-service.ts";
import { type ServerService, createService } from "./service/service.ts";
import { MOST_STRANGERS, type Strangers, createStrangers } from "../doors/strangers.ts";
import { createRedirects } from "../submission/redirects.ts";
import { openFilesFor } from "./open-files.ts";
import { createFallback, createServed } from "./fallback.ts";
import { knownOf } from "../pilots/largest.ts";
import { createSubmission } from "../submission/submission.ts";

/** Everything reachable from outside: launches, the service behind the API, and the doors. */
export interface Front {
  readonly launches: Launches;
  readonly doors: Doors;
  readonly listening: Listening;
  readonly url: string;
  /** The sockets for clients and agents on this machine, and the directory made for them. */
  readonly socket: string;
  readonly agentSocket: string;
  readonly runtime: string;
  /** Stops looking at clusters.yaml, and telling viewers. */
  close(): void;
}

export interface FrontOptions {
  readonly home: Home;
  readonly stored: Stored;
  readonly inside: Inside;
  readonly lifecycle: Lifecycle;
  readonly counts: Counts;
  readonly bundles: string;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly log: Log;
}

const outOfReserve = (left: number): string =>
  `the disk is full: the journal continues in its reserve, of which ${formatSize(left)} is left`;

const urlOf = ({ addresses, port }: Doors, { host }: Listening): string => {
  const [address = host] = addresses;
  return `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
};

const stateNow = (lifecycle: Lifecycle, reserve: Reserve): Pick<ServerView, "state" | "detail" | "journalReserve"> => ({
  state: lifecycle.full !== null ? "journal-full" : lifecycle.stopping ? "stopping" : "running",
  detail: lifecycle.full ?? (reserve.lent ? outOfReserve(reserve.bytes) : null),
  journalReserve: { bytes: reserve.bytes, of: RESERVE_BYTES, lent: reserve.lent },
});

const unreachableText = (far: readonly string[], host: string): string =>
  `agents of ${far.join(", ")} cannot reach ${host}: start the server again, without --host or with another address`;

/** Warns if nodes of a cluster could never reach this server. */
const warnOfLoopback = ({ clusters }: Home, { host }: Listening, log: Log): void => {
  const far = [...clusters.clusters.values()].filter(({ manager }) => manager.isHere !== true).map(({ name }) => name);
  if (far.length > 0 && isLoopback(host)) log(unreachableText(far, host));
};

const filesOf = (files: ServerView["files"]): Pick<ServerView, "files"> => (files === undefined ? {} : { files });

/** Reads clusters.yaml again for everybody in front of the doors and behind them. */
const openReload = (
  { home, stored, inside, log }: FrontOptions,
  { host }: Listening,
  changeLaunches: (names: Iterable<string>) => void,
): { readonly reload: Reload; readonly overrides: () => Home["overrides"] } => {
  let { overrides } = home;
  const { clock } = inside.engine;
  const reload = createReload({
    root: home.root,
    location: home.location,
    clusters: home.clusters,
    state: stored.state,
    clock,
    apply: (change) => {
      inside.changeClusters(change);
      changeLaunches(change.touched);
    },
    overridden: (digests) => {
      overrides = digests;
    },
    warn: ({ config, touched }) => {
      const far = [...touched].filter(
        (name) => config.clusters.has(name) && config.clusters.get(name)?.manager.isHere !== true,
      );
      return far.length > 0 && isLoopback(host) ? [unreachableText(far, host)] : [];
    },
    published: ({ changes, later }) =>
      stored.feed.publish({ event: "clusters.changed", detail: { changes, later } }, clock()),
    log,
  });
  return { reload, overrides: () => overrides };
};

/** Checks a cluster of the file as it is now, which is then the one that counts. */
const checkNow = async (
  { home, bundles }: FrontOptions,
  {
    reload,
    listening,
    addresses,
  }: { readonly reload: Reload; readonly listening: Listening; readonly addresses: readonly string[] },
  name: string,
): Promise<CheckView> => {
  const { warnings } = await reload.now();
  return checkCluster({
    home: home.root,
    bundles,
    cluster: clusterNamed(home.clusters, name),
    warnings,
    reachable: !isLoopback(listening.host),
    addresses,
    run: createCommands(),
  });
};

/** What is told to those who look, as it happens and over time. */
const createTold = ({ home, stored, inside }: FrontOptions, service: ServerService, numbers: Numbers) => {
  const series = createSeries(numbers.sums, inside.engine.clock);
  const live = createLive({
    feed: stored.feed,
    epoch: home.claim.epoch,
    overview: () => overviewOf(service.status(), numbers.sums()),
    run: service.liveRun,
    runNow: service.liveRunNow,
    runStamp: service.runStamp,
  });
  const close = (): void => {
    series.close();
    live.close();
  };
  return { series, live, close };
};

/** What this server says of itself. */
const createAbout =
  (
    { home, stored, inside, lifecycle }: FrontOptions,
    {
      reload,
      overrides,
      listening,
      doors,
    }: ReturnType<typeof openReload> & { listening: Listening; doors: () => Doors },
  ) =>
  (): ServerView => ({
    pid: process.pid,
    host: hostname(),
    url: urlOf(doors(), listening),
    started: inside.started,
    version: VERSION,
    home: home.root,
    epoch: home.claim.epoch,
    ...stateNow(lifecycle, stored.reserve),
    listens: listening,
    overrides: overrides(),
    clustersFile: reload.about(),
    ...filesOf(openFilesFor(home.clusters)),
  });

/** The doors, with those who come in through them, and the API and the page behind them. */
const openAllDoors = (
  { home: { root, keys, clusters }, inside: { engine, agents }, bundles, port, log }: FrontOptions,
  behind: Pick<ApiOptions, "service" | "launches" | "numbers" | "live" | "series">,
  {
    strangers,
    socket,
    agentSocket,
    host,
    now,
  }: Pick<Front, "socket" | "agentSocket"> & {
    readonly strangers: Strangers;
    readonly host: string;
    readonly now: () => Doors;
  },
): Promise<Doors> => {
  const { clock } = engine;
  const entrance = createEntrance({
    token: keys.clientToken,
    callerOf: (token) => behind.launches.callerOf(token),
    settings: () => clusters.page,
    clock,
    book: openSessionBook(join(root, "keys", "sessions.json"), log),
    listen: (wanted) => now().page.open(wanted),
  });
  return openDoors({
    api: createApi({
      ...behind,
      entrance,
      version: VERSION,
      clock,
      onKnown: (connection) => strangers.known(connection),
      log,
    }),
    socketPath: socket,
    agentSocketPath: agentSocket,
    host,
    port: port ?? 0,
    key: keys.keyPem,
    cert: keys.certPem,
    strangers,
    page: createPage({ directory: join(bundles, "page"), admit: entrance.admitPage, log }),
    sessions: entrance.sessions,
    clock,
    onAgent: (connection) => agents.accept(connection, () => strangers.known(connection)),
  });
};

export const openFront = async (options: FrontOptions): Promise<Front> => {
  const { home, stored, inside, lifecycle, bundles, log } = options;
  const { root, clusters, keys } = home;
  const { engine, agents, pilots, largest, shared, standings } = inside;
  const { mayTake, mayChange } = lifecycle;
  const listening = whereToListen({
    asked: options.host,
    clusters: clusters.clusters,
    state: stored.state,
    hostname: hostname(),
  });

  let opened: Doors | undefined;
  /** Nothing behind the doors is asked before they are open. */
  const openDoorsNow = (): Doors => {
    if (opened === undefined) throw new SlipwayError("internal", { detail: "the doors are not open yet" });
    return opened;
  };

  const launches = await createLaunches({
    engine,
    home: root,
    homeHash: inside.homeHash,
    clusters,
    bundles,
    endpoint: () => {
      const { addresses, port } = openDoorsNow();
      return { host: hostname(), addresses, port, keyPin: keys.pin };
    },
    mayTake,
    mayChange,
    log,
  });

  const { reload, overrides } = openReload(options, listening, (names) => launches.change(names));

  const fallback = createFallback(stored.state, standings, clusters.default);
  const service = createService({
    engine,
    agents,
    pilots,
    taskJobs: inside.jobs,
    pilotService: createPilotService({ engine, agents, pilots, clusters, mayTake }),
    runWatch: inside.runWatch,
    expected: inside.learning.expected,
    feed: stored.feed,
    home: root,
    clusters,
    largest,
    shared,
    standings,
    fallback,
    about: createAbout(options, { reload, overrides, listening, doors: openDoorsNow }),
    blocked: lifecycle.blocked,
    mayChange,
    launches: () => launches.live,
    submit: createSubmission({
      engine,
      journal: stored.journal,
      home: root,
      clusters,
      largest,
      shared,
      described: inside.descriptions.of,
      places: createPlaces({
        clusters,
        described: inside.descriptions.of,
        isServed: createServed(stored.state, clusters.default),
      }),
      redirects: createRedirects({ clusters, here: knownOf(largest.get("local") ?? {}), whyHere: fallback.whyHere }),
      mayTake,
      firstMemory: inside.memoryShare,
    }),
    reloadClusters: reload.now,
    checkCluster: (name) => checkNow(options, { reload, listening, addresses: openDoorsNow().addresses }, name),
    stop: lifecycle.stop,
    compact: inside.compactor.compact,
  });

  const numbers = createNumbers({ ...inside, ...stored, clusters, lifecycle, counts: options.counts });
  const told = createTold(options, service, numbers);
  const strangers = createStrangers(() => MOST_STRANGERS + agents.size);
  const runtime = await runtimeDirectory(root);
  const socket = socketPath(runtime, "api.sock");
  const agentSocket = socketPath(runtime, "agents.sock");
  opened = await openAllDoors(
    options,
    { service, launches, numbers: { ...numbers, unready: lifecycle.unready }, live: told.live, series: told.series },
    { strangers, socket, agentSocket, host: listening.host, now: openDoorsNow },
  );
  warnOfLoopback(home, listening, log);
  const close = (): void => {
    reload.close();
    told.close();
  };
  return { launches, doors: opened, listening, url: urlOf(opened, listening), socket, agentSocket, runtime, close };
};
