import { type Launch, isFinalLaunch } from "../../core/launch.ts";
import type { Engine } from "../../server/engine.ts";
import type { LaunchCluster } from "./cluster.ts";
import type { ChangedFacts, LaunchNews } from "./news.ts";
import { excerptOf } from "./outcome.ts";
import type { OutputStore } from "./output.ts";
import type { Storage } from "./storage.ts";
import { createTurns } from "./turns.ts";
import type { LaunchId } from "../../core/ids.ts";

/**
 * The end of a launch:
 *
 *   live ─ finish ─► logs gathered ─► ended, on disk ─ its retention is over ─► directory removed ─► record forgotten
 *
 * A directory that cannot be removed stays, and is tried again later.
 */
export interface Endings {
  /** Gathers its logs, reports its end, and removes its directory if that is due; once, however often it is called. */
  finish(launch: Launch, verdict: ChangedFacts): Promise<void>;
  isFinishing(launch: LaunchId): boolean;
  /** Removes its directory now. */
  clean(launch: Launch): Promise<void>;
  /** Starts to remove directories whose retention is over, and forgets records beyond those that are kept. */
  tidy(): Promise<void>;
}

export interface EndingsOptions {
  readonly engine: Engine;
  readonly clusters: ReadonlyMap<string, LaunchCluster>;
  readonly storage: Storage;
  readonly output: OutputStore;
  readonly news: LaunchNews;
  readonly log: (text: string) => void;
}

const EXCERPT_BYTES = 64 * 1024;
/** Launches of one user whose logs are gathered, or whose directories are removed, at the same time. */
const MOST_AT_ONCE = 4;
/** A directory that could not be removed is tried again after this. */
const CLEAN_AGAIN_MS = 60_000;
/** Records of launches that have ended and whose directories are gone. */
const MOST_ENDED = 2000;

export const createEndings = ({ engine, clusters, storage, output, news, log }: EndingsOptions): Endings => {
  const { state } = engine;
  const finishing = new Map<number, Promise<void>>();
  const cleaning = new Map<number, Promise<void>>();
  const cleanAgain = new Map<number, number>();
  const inTurn = createTurns(MOST_AT_ONCE);

  const isDue = (launch: Launch): boolean => {
    const retention = clusters.get(launch.cluster)?.settings.retention ?? 0;
    return isFinalLaunch(launch.state) && launch.cleaned === 0 && engine.clock() - launch.ended >= retention * 1000;
  };

  const clear = async (launch: Launch): Promise<void> => {
    await storage.remove(launch.directory, launch.user !== "");
    cleanAgain.delete(launch.id);
    if (launch.cleaned === 0) news.change(launch, { cleaned: true });
  };

  const leave = (launch: Launch, error: unknown): void => {
    news.complain(launch.directory, `it was not removed: ${(error as Error).message}`);
    cleanAgain.set(launch.id, performance.now() + CLEAN_AGAIN_MS);
  };

  const finish = async (launch: Launch, verdict: ChangedFacts): Promise<void> => {
    await output.collect(launch.id, launch.files);
    const lines =
      verdict.state === "succeeded"
        ? ""
        : excerptOf(await output.tail(launch.id, "stderr", launch.files, EXCERPT_BYTES));
    news.change(launch, { ...verdict, ...(lines === "" ? {} : { excerpt: lines }) });
    log(`launch ${launch.id} (${launch.nativeId || launch.jobName}) ${launch.state}: ${launch.reason}`);
    await engine.whenDurable();
    if (isDue(launch)) await clear(launch).catch((error: unknown) => leave(launch, error));
  };

  const clean = (launch: Launch): Promise<void> => {
    const before = cleaning.get(launch.id);
    if (before !== undefined) return before;
    const work = inTurn(launch.user, () => clear(launch)).finally(() => cleaning.delete(launch.id));
    cleaning.set(launch.id, work);
    return work;
  };

  return {
    finish: (launch, verdict) => {
      const before = finishing.get(launch.id);
      if (before !== undefined) return before;
      const work = inTurn(launch.user, () => finish(launch, verdict))
        .catch((error: unknown) => log(`launch ${launch.id}: ${(error as Error).message}`))
        .finally(() => {
          finishing.delete(launch.id);
          news.wake();
        });
      finishing.set(launch.id, work);
      return work;
    },
    isFinishing: (launch) => finishing.has(launch),
    clean,
    tidy: async () => {
      for (const launch of state.launches.values()) {
        if (!isDue(launch) || finishing.has(launch.id) || cleaning.has(launch.id)) continue;
        if ((cleanAgain.get(launch.id) ?? -Infinity) > performance.now()) continue;
        void clean(launch).catch((error: unknown) => leave(launch, error));
      }
      const ended = [...state.launches.values()].filter((each) => each.cleaned > 0);
      for (const launch of ended.slice(0, Math.max(0, ended.length - MOST_ENDED))) {
        await output.remove(launch.id);
        engine.commit({ type: "launch.removed", at: engine.clock(), launch: launch.id });
      }
    },
  };
};
