import { createServer } from "node:http";
import { Socket } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { Agents } from "../agent-links/agents.ts";
import { replayState } from "../archive/compact.ts";
import { createApi } from "../api/app.ts";
import { BASE } from "../api/base.ts";
import { ownersOnly } from "../api/entrance.ts";
import type { LaunchService } from "../api/launch-service.ts";
import { problemAnswer } from "../api/problem.ts";
import type { Service } from "../api/service.ts";
import type { Standings } from "../check/standings.ts";
import { type ClustersConfig, combineClusters } from "../config/clusters-file.ts";
import { loadLayers } from "../config/load-clusters.ts";
import { SlipwayError } from "../errors.ts";
import { heldElsewhere } from "../home/index.ts";
import { type Journal, readJournal } from "../journal/index.ts";
import { createExpected } from "../learned/expected.ts";
import { createLearned } from "../learned/learned.ts";
import { createScheduler } from "../scheduler/scheduler.ts";
import { VERSION } from "../protocol/package-version.ts";
import type { Pilots } from "../pilots/pilots.ts";
import { type Engine, createEngine } from "./engine.ts";
import type { Fallback } from "./fallback.ts";
import { type Feed, createFeed } from "./feed.ts";
import type { PilotService } from "./service/pilot-service.ts";
import type { RunWatch } from "./service/run-watch.ts";
import { createService } from "./service/service.ts";

/**
 * Looking at a home that has no server: replays its journal, read-only, and answers the questions of the API that ask
 * what happened, over the connection that it was started with. It claims nothing and writes nothing, so it may run beside
 * anything, also beside a server that starts meanwhile.
 */

const NO_SERVER = "no server runs";

/** A journal that was read and cannot be written. */
const closedBook = (home: string): Journal => {
  const refuse = (): never => {
    throw new SlipwayError("no-server", { home });
  };
  return new Proxy({} as Journal, {
    get: (_, name) => {
      if (name === "whenDurable") return () => Promise.resolve();
      return ["beforeCommit", "onDurable", "onState"].includes(String(name)) ? () => undefined : refuse;
    },
  });
};

const noPilot = (pilot: number): never => {
  throw new SlipwayError("no-such-pilot", { pilot });
};

/** Of what only a server has, there is nothing: no agents, no pilots that answer, no queues. */
const nobody = {
  agents: { link: () => undefined, links: () => [] } as unknown as Agents,
  pilots: {
    able: () => [],
    waiting: () => null,
    problem: () => null,
    failure: () => null,
    isDraining: () => false,
  } as unknown as Pilots,
  taskJobs: {
    waiting: () => null,
    unreachable: () => null,
    refused: () => null,
    directory: () => "",
    mostQueued: () => 0,
  } as never,
  pilotService: { pilotViews: () => [], fleetViews: () => [], pilotView: noPilot } as unknown as PilotService,
  runWatch: {} as RunWatch,
  standings: { of: () => undefined } as unknown as Standings,
  fallback: {} as Fallback,
};

/** What clusters.yaml says helps to explain; one that cannot be read must not keep anybody from looking. */
const clustersOf = async (home: string): Promise<ClustersConfig> => {
  const { layers, keys } = await loadLayers({ home }).catch(() => loadLayers({ home: join(home, "journal") }));
  return combineClusters(layers, keys);
};

const readAll = async (home: string, clusters: ClustersConfig): Promise<{ engine: Engine; feed: Feed }> => {
  let feed = createFeed();
  const state = await replayState(home, (replay) => readJournal(join(home, "journal"), replay), {
    losses: clusters.limits.losses,
    feed: () => (feed = createFeed()),
  });
  return { engine: createEngine(state, createScheduler(), closedBook(home), Date.now), feed };
};

const ATTEMPTS = 5;

/** An archive that is named and gone was replaced by a server that compacts meanwhile: what it wrote is there now. */
const readAgain = async (home: string, clusters: ClustersConfig): Promise<{ engine: Engine; feed: Feed }> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await readAll(home, clusters);
    } catch (error) {
      if (attempt === ATTEMPTS || (error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
};

const createLookService = async (home: string): Promise<Service> => {
  const host = await heldElsewhere(home, hostname());
  if (host !== undefined) throw new SlipwayError("home-held", { home, host, pid: "unknown", age: "an unknown time" });
  const clusters = await clustersOf(home);
  const { engine, feed } = await readAgain(home, clusters);
  const refuse = (): never => {
    throw new SlipwayError("no-server", { home });
  };
  const service = createService({
    ...nobody,
    engine,
    feed,
    home,
    clusters,
    expected: createExpected(createLearned(), { defaultCluster: clusters.default, unknownMs: () => 60_000 }),
    largest: new Map(),
    shared: [],
    etas: { of: (run) => (run.finished > 0 ? undefined : { reason: NO_SERVER }) },
    about: refuse,
    blocked: () => NO_SERVER,
    mayChange: refuse,
    launches: () => 0,
    submit: refuse,
    checkCluster: refuse,
    reloadClusters: refuse,
    stop: refuse,
    compact: refuse,
  });
  return {
    ...service,
    why: async (run, index) => {
      const why = await service.why(run, index);
      return why.cause === "blocked" ? { ...why, cause: "no-server", remedy: "`slipway up` starts the server." } : why;
    },
  };
};

/** What is answered without a server: what happened to runs and tasks, and nothing that would last. */
const ANSWERED = new RegExp(`^${BASE}/(runs(/.*)?|events)$`);
const LASTS = /\/watch$/;

const isAnswered = (method: string, url: URL): boolean =>
  (method === "POST" && url.pathname === `${BASE}/outputs/known`) ||
  (method === "GET" &&
    ANSWERED.test(url.pathname) &&
    !LASTS.test(url.pathname) &&
    !["1", "true"].includes(url.searchParams.get("follow") ?? ""));

const refuseNumbers = (): never => {
  throw new SlipwayError("internal", { detail: NO_SERVER });
};

export const look = async (home: string, fd: number): Promise<number> => {
  const socket = new Socket({ fd });
  const ended = new Promise<number>((resolve) => {
    socket.once("close", () => resolve(0));
    socket.on("error", () => socket.destroy());
  });
  // whoever asks learns from the answer why the journal cannot be read
  const api = createLookService(home).then((service) =>
    createApi({
      service,
      launches: {} as LaunchService,
      live: { open: refuseNumbers, next: refuseNumbers },
      series: { series: refuseNumbers },
      numbers: { text: () => "", sums: refuseNumbers, unready: () => NO_SERVER },
      entrance: ownersOnly(refuseNumbers),
      version: VERSION,
      clock: Date.now,
      log: (text) => void process.stderr.write(`${text}\n`),
    }),
  );
  api.catch(() => undefined);
  const door = new Hono();
  door.onError((error) => {
    const known =
      error instanceof SlipwayError ? error : new SlipwayError("internal", { detail: error.message }, error);
    return problemAnswer(known);
  });
  door.all("*", async (context) => {
    if (!isAnswered(context.req.method, new URL(context.req.url))) throw new SlipwayError("no-server", { home });
    return (await api).fetch(context.req.raw, context.env as never);
  });
  const server = createServer(getRequestListener(door.fetch, { hostname: hostname() }));
  server.keepAliveTimeout = 0;
  server.emit("connection", socket);
  return ended;
};
