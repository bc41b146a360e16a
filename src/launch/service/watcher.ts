import { type Launch, isFinalLaunch } from "../../core/launch.ts";
import { type LongTimer, repeatTimer } from "../../long-timer.ts";
import type { JobStatus } from "../../managers/provider.ts";
import type { Engine } from "../../server/engine.ts";
import type { LaunchCluster } from "./cluster.ts";
import { createEndings } from "./endings.ts";
import { createHandover } from "./handover.ts";
import { createNews } from "./news.ts";
import { isNews, verdictOf } from "./outcome.ts";
import type { OutputStore } from "./output.ts";
import type { Storage } from "./storage.ts";
import { readNote } from "./users-files.ts";
import type { LaunchId } from "../../core/ids.ts";

/**
 * Carries launches through their life: handover.ts gives them to their manager, endings.ts clears away what has ended,
 * and here one poll per period asks about all launches of a cluster. What follows from an answer happens for each
 * launch separately: nobody waits for the logs or the directory of another user's job.
 */

const PERIOD_MS = 5000;
/** The period while somebody waits for a launch. */
const WATCHED_MS = 1000;
const TICK_MS = 250;
/** Polls after a request that takes a manager a moment. */
const SOON_MS = [100, 400, 1000, 2500];

export interface WatcherOptions {
  readonly engine: Engine;
  readonly clusters: ReadonlyMap<string, LaunchCluster>;
  readonly storage: Storage;
  readonly output: OutputStore;
  readonly log: (text: string, facts?: object) => void;
  readonly periodMs?: number;
}

export interface Watcher {
  /** Submits a launch, whose intent is on disk, to its manager. If the manager refuses, throws what it says. */
  submit(launch: Launch): Promise<void>;
  /** Asks for its end; the intent is on disk first. */
  cancel(launch: Launch): Promise<void>;
  clean(launch: Launch): Promise<void>;
  /** Asks the manager of this cluster now; resolves with its answers applied, to this launch or to all of them. */
  look(cluster: string, launch?: LaunchId): Promise<void>;
  /** Whether its end is known and all its output was gathered. */
  isOver(launch: Launch): boolean;
  /** Watches for changes, until the returned function is called. */
  watch(onChange: () => void): () => void;
  close(): void;
}

/** An exit status as a shell gives it; anything else did not come from the script. */
const exitCodeIn = (note: string | undefined): { exitCode?: number } =>
  note !== undefined && /^\d{1,3}$/.test(note) && Number(note) <= 255 ? { exitCode: Number(note) } : {};

/** Often while there is something to see, and rarely otherwise: a server at rest should not wake up. */
const createTicks = (act: () => void, isQuiet: () => boolean, periodMs = PERIOD_MS) => {
  let timer: LongTimer | undefined;
  let pace = 0;
  let stopped = false;
  const arm = (): void => {
    const ms = Math.min(isQuiet() ? PERIOD_MS : TICK_MS, periodMs);
    if (stopped || ms === pace) return;
    timer?.stop();
    pace = ms;
    timer = repeatTimer(ms, () => {
      act();
      arm();
    });
  };
  return {
    arm,
    /** Begins something that is worth looking at. */
    after: <T>(begin: () => T): T => {
      const begun = begin();
      arm();
      return begun;
    },
    stop: (): void => {
      stopped = true;
      timer?.stop();
    },
  };
};

export const createWatcher = (options: WatcherOptions): Watcher => {
  const { engine, clusters, storage, output, log } = options;
  const { state } = engine;
  /** Work that follows from the last answer, for each launch that has any. */
  const working = new Map<number, Promise<void>>();
  const looking = new Map<string, Promise<void>>();
  let closed = false;

  const soon = (cluster: string): void => {
    for (const ms of SOON_MS) setTimeout(() => void round(cluster), ms).unref();
  };

  const begin = (launch: Launch, work: () => Promise<void>): void => {
    const done = work()
      .catch((error: unknown) => news.complain(launch.cluster, (error as Error).message))
      .finally(() => working.delete(launch.id));
    working.set(launch.id, done);
  };

  const news = createNews(engine, log);
  const endings = createEndings({ engine, clusters, storage, output, news, log });
  const handover = createHandover({ state, clusters, endings, news, log, soon, begin });

  const live = (cluster: string): Launch[] =>
    [...state.launches.values()].filter((each) => each.cluster === cluster && !isFinalLaunch(each.state));

  /** What the manager's answer means for a launch. */
  const judge = async (cluster: LaunchCluster, launch: Launch, status: JobStatus): Promise<void> => {
    const left = status.state === "ended" ? exitCodeIn(await readNote(launch.files.exitCode)) : {};
    if (isFinalLaunch(launch.state)) return;
    const verdict = verdictOf(status, { ...left, cancelAsked: launch.cancelAsked > 0 });
    if (verdict.state !== undefined && isFinalLaunch(verdict.state)) return endings.finish(launch, verdict);
    if (isNews(launch, verdict)) news.change(launch, verdict);
    if (launch.cancelAsked > 0) await handover.cancel(cluster, launch);
  };

  const ask = async (cluster: LaunchCluster): Promise<void> => {
    const known = live(cluster.config.name).filter(
      ({ id, nativeId }) => nativeId !== "" && !endings.isFinishing(id) && !working.has(id),
    );
    if (known.length === 0) return;
    const answers = await cluster.provider().poll(known.map((launch) => launch.nativeId));
    for (const launch of known) {
      const status = answers.get(launch.nativeId);
      if (status !== undefined && !isFinalLaunch(launch.state) && !working.has(launch.id))
        begin(launch, () => judge(cluster, launch, status));
    }
  };

  const lookOnce = async (cluster: LaunchCluster): Promise<void> => {
    const { name } = cluster.config;
    try {
      const lost = live(name).filter(handover.isLost);
      if (lost.length > 0) await handover.adopt(cluster, lost);
      await ask(cluster);
      news.isWell(name);
    } catch (error) {
      news.complain(name, (error as Error).message);
    }
  };

  /** Resolves when the manager has answered; the work that follows continues. */
  const round = (name: string): Promise<void> => {
    const cluster = clusters.get(name);
    if (cluster === undefined || closed) return Promise.resolve();
    const before = looking.get(name);
    if (before !== undefined) return before;
    const work = lookOnce(cluster).finally(() => looking.delete(name));
    looking.set(name, work);
    return work;
  };

  const look: Watcher["look"] = async (name, only) => {
    await round(name);
    const wanted = only === undefined ? live(name).map(({ id }) => id) : [only];
    await Promise.all(wanted.map((id) => working.get(id)));
  };

  let busy = false;
  let lookedAt = -Infinity;
  const period = async (): Promise<void> => {
    const pause = options.periodMs ?? (news.isWatched ? WATCHED_MS : PERIOD_MS);
    // the last look took a moment of this pause
    if (busy || performance.now() - lookedAt < pause * 0.9) return;
    busy = true;
    await Promise.all([...clusters.keys()].map((name) => (live(name).length > 0 ? round(name) : undefined)));
    await endings.tidy().catch((error: unknown) => log(`launches: ${(error as Error).message}`));
    lookedAt = performance.now();
    busy = false;
  };
  const isQuiet = (): boolean => !news.isWatched && [...clusters.keys()].every((name) => live(name).length === 0);
  const ticks = createTicks(() => void period(), isQuiet, options.periodMs);
  void period();
  ticks.arm();

  return {
    submit: (...given) => ticks.after(() => handover.submit(...given)),
    cancel: async (launch) => {
      if (launch.cancelAsked === 0) await engine.whenDurable();
      const cluster = clusters.get(launch.cluster);
      if (cluster === undefined || isFinalLaunch(launch.state)) return;
      if (launch.nativeId !== "") await handover.cancel(cluster, launch);
      else await look(launch.cluster, launch.id);
    },
    clean: endings.clean,
    look,
    isOver: (launch) => isFinalLaunch(launch.state) && !endings.isFinishing(launch.id),
    watch: (...given) => ticks.after(() => news.watch(...given)),
    close: () => {
      closed = true;
      ticks.stop();
    },
  };
};
