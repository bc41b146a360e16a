import { hostname } from "node:os";
import { VERSION } from "../protocol/package-version.ts";
import type { ClustersLocation } from "../config/load-clusters.ts";
import { type Counts, createCounts } from "./counts.ts";
import { type Front, openFront } from "./front.ts";
import { prepareHome, removeEndpoint, removeRuntimeDirectory, writeEndpoint } from "../home/index.ts";
import { type Detect, type Inside, createInside } from "./inside.ts";
import { createLifecycle } from "./lifecycle.ts";
import type { Listening } from "../doors/listening.ts";
import type { Log } from "./logger.ts";
import { type Stored, type Home, openState, openHome } from "./open-home.ts";

/** Assembles a server: claims the home, replays the journal, adopts what still runs, and opens its doors. */

export interface ServeOptions {
  readonly home: string;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** Files besides the home's own. */
  readonly clusters: Omit<ClustersLocation, "home">;
  readonly log: Log;
  /** Directory of the built files, among them the agent's bundle. */
  readonly bundles: string;
  readonly detect: Detect;
}

export interface RunningServer {
  readonly url: string;
  readonly listening: Listening;
  readonly ended: Promise<number>;
  stop(now: boolean): void;
}

interface Parts {
  readonly home: Home;
  readonly stored: Stored;
  readonly inside: Inside;
  readonly front: Front;
  readonly counts: Counts;
  readonly log: Log;
}

/** Tells clients and agents where this server is. */
const publishEndpoint = async ({ home, inside, front }: Parts): Promise<void> => {
  const { root, claim, keys } = home;
  const { doors, socket, agentSocket, url } = front;
  await writeEndpoint(root, {
    pid: process.pid,
    host: hostname(),
    addresses: doors.addresses,
    port: doors.port,
    socket,
    agentSocket,
    keyPin: keys.pin,
    epoch: claim.epoch,
    started: inside.started,
    version: VERSION,
  });
  await claim.setAddress(url);
};

/** Closes everything: first what could create work, last what the others write to. */
const closeAll = async (parts: Parts): Promise<void> => {
  const { home, stored, inside, front, log } = parts;
  front.close();
  inside.judge.close();
  inside.pilots.close();
  inside.standings.close();
  await front.launches.close();
  await inside.compactor.close();
  await removeEndpoint(home.root, home.claim.epoch);
  await front.doors.close();
  await removeRuntimeDirectory(front.runtime);
  inside.agents.close();
  await inside.learning.close();
  await stored.journal.close().catch((error: unknown) => log(`the journal did not close: ${(error as Error).message}`));
  await stored.reserve.close();
  parts.counts.close();
  await home.claim.release();
  log("stopped");
};

export const startServer = async (options: ServeOptions): Promise<RunningServer> => {
  const { log, bundles, detect } = options;
  const { root } = await prepareHome(options.home);
  const lifecycle = createLifecycle(root, log);
  const home = await openHome({
    root,
    location: { home: root, ...options.clusters },
    log,
    onLost: (reason) => {
      log(`this server lost its home: ${reason}`);
      lifecycle.end(3);
    },
  });
  const counts = createCounts();
  const stored = await openState(home, counts, log);
  const inside = await createInside({ home, stored, lifecycle, counts, bundles, detect, log });
  const front = await openFront({
    home,
    stored,
    inside,
    lifecycle,
    counts,
    bundles,
    host: options.host,
    port: options.port,
    log,
  });
  const parts: Parts = { home, stored, inside, front, counts, log };
  const { engine, pilots } = inside;

  await engine.whenDurable();
  engine.rebuildQueues();
  inside.learning.start();
  await publishEndpoint(parts);
  await front.launches.start();
  lifecycle.started();
  const { listening, url } = front;
  const { runs, archived } = stored.state;
  log(`listening on ${listening.host}: ${listening.reason}`);
  log(`epoch ${home.claim.epoch} at ${url}: ${runs.size} runs in memory, ${archived.size} in the archive`);

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await (closing ??= closeAll(parts));
    lifecycle.end(0);
  };
  lifecycle.onStop((now) => void pilots.stop(now).then(close));
  return { url, listening, ended: lifecycle.ended, stop: lifecycle.stop };
};
