import { readFile, readdir } from "node:fs/promises";
import type { Launch } from "../../core/launch.ts";
import { isFinalLaunch } from "../../core/launch.ts";
import type { LaunchChanged } from "../../core/events.ts";
import { SlipwayError } from "../../errors.ts";
import { CommandError } from "../../providers/commands.ts";
import type { JobStatus } from "../../providers/provider.ts";
import type { Engine } from "../engine.ts";
import type { LaunchCluster } from "./cluster.ts";
import { excerptOf, verdictOf } from "./outcome.ts";
import type { OutputStore } from "./output.ts";
import type { Storage } from "./storage.ts";
import { createTurns } from "./turns.ts";
import { readNote } from "./users-files.ts";

/**
 * Carries launches through their life: hands them to their manager, asks about all of a cluster's with one poll a
 * period, finds again those whose answer was lost (rule 3), and clears away what has ended. What an answer means for a
 * launch is carried out for each by itself: nobody waits for the logs or the directory of another user's job.
 */

const PERIOD_MS = 5000;
/** While somebody waits for one. */
const WATCHED_MS = 1000;
const TICK_MS = 250;
/** After something that a manager takes a moment to do. */
const SOON_MS = [100, 400, 1000, 2500];
/** A cancellation that has shown no effect is given again after this. */
const CANCEL_AGAIN_MS = 10_000;
const EXCERPT_BYTES = 64 * 1024;
/** Launches of one user whose logs are gathered, or whose directories are removed, at the same time. */
const MOST_AT_ONCE = 4;
/** A directory that could not be removed is tried again after this. */
const CLEAN_AGAIN_MS = 60_000;
/** Records of launches that have ended and were cleared away. */
const MOST_ENDED = 2000;

export interface WatcherOptions {
  readonly engine: Engine;
  readonly clusters: ReadonlyMap<string, LaunchCluster>;
  readonly storage: Storage;
  readonly output: OutputStore;
  readonly log: (text: string, facts?: object) => void;
  readonly periodMs?: number;
}

export interface Watcher {
  /** Hands a launch, whose intent is on disk, to its manager. Throws what the manager says when it refuses. */
  submit(launch: Launch): Promise<void>;
  /** Asks for its end; the intent is on disk before. */
  cancel(launch: Launch): Promise<void>;
  clean(launch: Launch): Promise<void>;
  /** Asks the manager of this cluster now; resolves with its answers applied, to this launch or to all of them. */
  look(cluster: string, launch?: number): Promise<void>;
  /** Whether its end is known and everything of it was gathered. */
  isOver(launch: Launch): boolean;
  /** Somebody waits for changes, until the returned function is called. */
  watch(onChange: () => void): () => void;
  close(): void;
}

/** What looks like a manager's id of a job. */
const idIn = (note: string | undefined): string | undefined =>
  note !== undefined && /^[\w.[\]-]{1,100}$/.test(note) ? note : undefined;

/** What a shell can exit with; anything else is not the script's. */
const exitCodeIn = (note: string | undefined): { exitCode?: number } =>
  note !== undefined && /^\d{1,3}$/.test(note) && Number(note) <= 255 ? { exitCode: Number(note) } : {};

/** Whether a process of this machine still hands this script to a manager: a server's child may outlive it. */
const isBeingSubmitted = async (script: string): Promise<boolean> => {
  for (const pid of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
    if (words.includes(script)) return true;
  }
  return false;
};

export const createWatcher = (options: WatcherOptions): Watcher => {
  const { engine, clusters, storage, output, log } = options;
  const { state } = engine;
  const submitting = new Set<number>();
  /** Journaled by a server before this one; not told apart by time, which may have been set back. */
  const inherited = new Set([...state.launches.values()].filter((each) => each.nativeId === "").map(({ id }) => id));
  const cancelled = new Map<number, number>();
  const finishing = new Map<number, Promise<void>>();
  /** What follows from the last answer, for each launch of which something does. */
  const working = new Map<number, Promise<void>>();
  const cleaning = new Map<number, Promise<void>>();
  const cleanAgain = new Map<number, number>();
  const inTurn = createTurns(MOST_AT_ONCE);
  const looking = new Map<string, Promise<void>>();
  const watchers = new Set<() => void>();
  const problems = new Map<string, string>();
  let closed = false;

  const change = (launch: Launch, facts: Omit<LaunchChanged, "type" | "at" | "launch">): number => {
    const lsn = engine.commit({ type: "launch.changed", at: engine.clock(), launch: launch.id, ...facts });
    for (const wake of watchers) wake();
    return lsn;
  };

  const live = (cluster: string): Launch[] =>
    [...state.launches.values()].filter((each) => each.cluster === cluster && !isFinalLaunch(each.state));

  const soon = (cluster: string): void => {
    for (const ms of SOON_MS) setTimeout(() => void round(cluster), ms).unref();
  };

  const excerpt = async (launch: Launch): Promise<string> =>
    excerptOf(await output.tail(launch.id, "stderr", launch.files, EXCERPT_BYTES));

  const begin = (launch: Launch, work: () => Promise<void>): void => {
    const done = work()
      .catch((error: unknown) => complain(launch.cluster, (error as Error).message))
      .finally(() => working.delete(launch.id));
    working.set(launch.id, done);
  };

  const complain = (about: string, text: string): void => {
    if (problems.get(about) !== text) log(`${about}: ${text}`);
    problems.set(about, text);
  };

  /** The end of a launch: its logs are gathered before it is told, and its directory goes when it may. */
  const finish = async (launch: Launch, verdict: Omit<LaunchChanged, "type" | "at" | "launch">): Promise<void> => {
    await output.collect(launch.id, launch.files);
    const lines = verdict.state === "succeeded" ? "" : await excerpt(launch);
    change(launch, { ...verdict, ...(lines === "" ? {} : { excerpt: lines }) });
    cancelled.delete(launch.id);
    log(`launch ${launch.id} (${launch.nativeId || launch.jobName}) ${launch.state}: ${launch.reason}`);
    await engine.whenDurable();
    if (isDue(launch)) await clear(launch).catch((error: unknown) => leave(launch, error));
  };

  const finishOnce = (launch: Launch, verdict: Omit<LaunchChanged, "type" | "at" | "launch">): Promise<void> => {
    const before = finishing.get(launch.id);
    if (before !== undefined) return before;
    const work = inTurn(launch.user, () => finish(launch, verdict))
      .catch((error: unknown) => log(`launch ${launch.id}: ${(error as Error).message}`))
      .finally(() => {
        finishing.delete(launch.id);
        for (const wake of watchers) wake();
      });
    finishing.set(launch.id, work);
    return work;
  };

  const clear = async (launch: Launch): Promise<void> => {
    await storage.remove(launch.directory, launch.user !== "");
    cleanAgain.delete(launch.id);
    if (launch.cleaned === 0) change(launch, { cleaned: true });
  };

  const leave = (launch: Launch, error: unknown): void => {
    complain(launch.directory, `it was left alone: ${(error as Error).message}`);
    cleanAgain.set(launch.id, performance.now() + CLEAN_AGAIN_MS);
  };

  const clean = (launch: Launch): Promise<void> => {
    const before = cleaning.get(launch.id);
    if (before !== undefined) return before;
    const work = inTurn(launch.user, () => clear(launch)).finally(() => cleaning.delete(launch.id));
    cleaning.set(launch.id, work);
    return work;
  };

  /** Its retention is over. */
  const isDue = (launch: Launch): boolean => {
    const retention = clusters.get(launch.cluster)?.settings.retention ?? 0;
    return isFinalLaunch(launch.state) && launch.cleaned === 0 && engine.clock() - launch.ended >= retention * 1000;
  };

  /** Begins with directories whose retention is over, and forgets records beyond those that are kept. */
  const tidy = async (): Promise<void> => {
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
  };

  const submit = async (launch: Launch): Promise<void> => {
    const cluster = clusters.get(launch.cluster);
    if (cluster === undefined) throw new SlipwayError("no-such-cluster", { name: launch.cluster });
    submitting.add(launch.id);
    try {
      const { nativeId, note } = await cluster.provider(launch.user || undefined).submit({
        name: launch.jobName,
        directory: launch.directory,
        command: [],
        script: launch.files.script,
        options: launch.files.options,
        ...(launch.user === "" ? {} : { user: launch.user }),
      });
      change(launch, { nativeId });
      log(`launch ${launch.id} was handed to ${launch.cluster} as ${nativeId}${note === undefined ? "" : `: ${note}`}`);
      soon(launch.cluster);
    } catch (error) {
      // nothing is known of one that did not answer: it is looked up by its name, like after a crash
      if (error instanceof CommandError && error.timedOut) {
        inherited.add(launch.id);
        log(`launch ${launch.id}: ${error.message}; it is looked for by its name`);
        return;
      }
      const detail = error instanceof SlipwayError ? String(error.facts["detail"] ?? error.message) : String(error);
      await finishOnce(launch, { state: "failed", raw: "refused", reason: detail.slice(0, 2000) });
      throw error instanceof SlipwayError
        ? error
        : new SlipwayError("cluster-refused", { cluster: launch.cluster, detail: (error as Error).message }, error);
    } finally {
      submitting.delete(launch.id);
    }
    if (launch.cancelAsked > 0) await tellCancel(cluster, launch);
  };

  const tellCancel = async (cluster: LaunchCluster, launch: Launch): Promise<void> => {
    const last = cancelled.get(launch.id);
    if (last !== undefined && performance.now() - last < CANCEL_AGAIN_MS) return;
    cancelled.set(launch.id, performance.now());
    await cluster.provider(launch.user || undefined).cancel([launch.nativeId]);
    soon(launch.cluster);
  };

  /**
   * Launches whose intent is known and whose answer is not: found by name in the queue, or by what their script wrote
   * down. Only when neither knows it, and nobody is still handing it over, it was never submitted: it is now.
   */
  const adopt = async (cluster: LaunchCluster, lost: readonly Launch[]): Promise<void> => {
    const busy = new Map<number, boolean>();
    for (const launch of lost) busy.set(launch.id, await isBeingSubmitted(launch.files.script));
    // asked after the processes: one that ended in between is in the listing
    const found = new Map(
      (await cluster.provider().list(`${cluster.settings.jobNamePrefix}_`)).map((job) => [job.name, job.nativeId]),
    );
    const notes = await Promise.all(lost.map((launch) => readNote(launch.files.nativeId)));
    for (const [i, launch] of lost.entries()) {
      const nativeId = found.get(launch.jobName) ?? idIn(notes[i]);
      if (nativeId !== undefined) {
        inherited.delete(launch.id);
        change(launch, { nativeId });
        log(`launch ${launch.id} was found again as ${nativeId}`);
      } else if (busy.get(launch.id) !== true) {
        inherited.delete(launch.id);
        begin(launch, () =>
          launch.cancelAsked > 0
            ? finishOnce(launch, { state: "cancelled", reason: "cancelled before it was submitted" })
            : submit(launch).catch((error: unknown) => log(`launch ${launch.id}: ${(error as Error).message}`)),
        );
      }
    }
  };

  /** What the manager's answer means for a launch. */
  const judge = async (cluster: LaunchCluster, launch: Launch, status: JobStatus): Promise<void> => {
    const left = status.state === "ended" ? exitCodeIn(await readNote(launch.files.exitCode)) : {};
    if (isFinalLaunch(launch.state)) return;
    const verdict = verdictOf(status, { ...left, cancelAsked: launch.cancelAsked > 0 });
    if (verdict.state !== undefined && isFinalLaunch(verdict.state)) return finishOnce(launch, verdict);
    const isNews =
      (verdict.state === "running" && launch.state === "pending") ||
      (verdict.raw !== undefined && verdict.raw !== launch.raw) ||
      (verdict.reason !== undefined && verdict.reason !== launch.reason) ||
      (verdict.hosts !== undefined && verdict.hosts.join() !== launch.hosts.join());
    if (isNews) change(launch, verdict);
    if (launch.cancelAsked > 0) await tellCancel(cluster, launch);
  };

  const ask = async (cluster: LaunchCluster): Promise<void> => {
    const known = live(cluster.config.name).filter(
      ({ id, nativeId }) => nativeId !== "" && !finishing.has(id) && !working.has(id),
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
      const lost = live(name).filter((launch) => inherited.has(launch.id) && !submitting.has(launch.id));
      if (lost.length > 0) await adopt(cluster, lost);
      await ask(cluster);
      problems.delete(name);
    } catch (error) {
      complain(name, (error as Error).message);
    }
  };

  /** Resolves when the manager has answered; what follows from that goes on. */
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
    const pause = options.periodMs ?? (watchers.size > 0 ? WATCHED_MS : PERIOD_MS);
    if (busy || performance.now() - lookedAt < pause) return;
    busy = true;
    await Promise.all([...clusters.keys()].map((name) => (live(name).length > 0 ? round(name) : undefined)));
    await tidy().catch((error: unknown) => log(`launches: ${(error as Error).message}`));
    lookedAt = performance.now();
    busy = false;
  };
  void period();
  const timer = setInterval(() => void period(), Math.min(TICK_MS, options.periodMs ?? TICK_MS));

  return {
    submit,
    cancel: async (launch) => {
      if (launch.cancelAsked === 0) await engine.whenDurable();
      const cluster = clusters.get(launch.cluster);
      if (cluster === undefined || isFinalLaunch(launch.state)) return;
      if (launch.nativeId !== "") await tellCancel(cluster, launch);
      else await look(launch.cluster, launch.id);
    },
    clean,
    look,
    isOver: (launch) => isFinalLaunch(launch.state) && !finishing.has(launch.id),
    watch: (onChange) => {
      watchers.add(onChange);
      return () => void watchers.delete(onChange);
    },
    close: () => {
      closed = true;
      clearInterval(timer);
    },
  };
};
