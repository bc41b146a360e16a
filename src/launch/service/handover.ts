import { readFile, readdir } from "node:fs/promises";
import type { State } from "../../core/state.ts";
import type { Launch } from "../../core/launch.ts";
import { SlipwayError } from "../../errors.ts";
import { CommandError } from "../../managers/commands.ts";
import type { LaunchCluster } from "./cluster.ts";
import type { Endings } from "./endings.ts";
import type { LaunchNews } from "./news.ts";
import { readNote } from "./users-files.ts";

/**
 * Hands launches to their managers, and finds those again whose answer was lost (rule 3).
 *
 *   intent on disk ─ submit ─► it has the manager's id
 *         │  ▲           └─ no answer, or a crash ─► lost ─ its name is listed, or its script wrote the id down ─► it has it
 *         │  └──────────── nobody knows it, and nobody is handing it over ◄─┘
 *         └─ refused ─► failed
 */
export interface Handover {
  /** Submits a launch, whose intent is on disk, to its manager. If the manager refuses, throws what it says. */
  submit(launch: Launch): Promise<void>;
  /** Asks the manager to cancel it; again only after a while. */
  cancel(cluster: LaunchCluster, launch: Launch): Promise<void>;
  /** Whether the answer to its submission was lost, and nobody is submitting it again. */
  isLost(launch: Launch): boolean;
  /** Looks for launches whose answer was lost. */
  adopt(cluster: LaunchCluster, lost: readonly Launch[]): Promise<void>;
}

export interface HandoverOptions {
  readonly state: State;
  readonly clusters: ReadonlyMap<string, LaunchCluster>;
  readonly endings: Endings;
  readonly news: LaunchNews;
  readonly log: (text: string) => void;
  /** The cluster was asked for something that takes it a moment. */
  readonly soon: (cluster: string) => void;
  /** Work for a launch that nobody waits for. */
  readonly begin: (launch: Launch, work: () => Promise<void>) => void;
}

/** A cancellation that has had no effect is repeated after this. */
const CANCEL_AGAIN_MS = 10_000;

/** What looks like a manager's job id. */
const idIn = (note: string | undefined): string | undefined =>
  note !== undefined && /^[\w.[\]-]{1,100}$/.test(note) ? note : undefined;

/** Whether a process on this machine is still submitting this script: a server's child may outlive it. */
const isBeingSubmitted = async (script: string): Promise<boolean> => {
  for (const pid of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
    if (words.includes(script)) return true;
  }
  return false;
};

const refusalOf = (error: unknown): string =>
  error instanceof SlipwayError ? String(error.facts["detail"] ?? error.message) : String(error);

export const createHandover = (options: HandoverOptions): Handover => {
  const { state, clusters, endings, news, log, soon, begin } = options;
  const submitting = new Set<number>();
  /**
   * Journaled by an earlier server, or not answered. A set instead of a comparison of times: the clock may be set back.
   */
  const lost = new Set([...state.launches.values()].filter((each) => each.nativeId === "").map(({ id }) => id));
  const cancelledAt = new WeakMap<Launch, number>();

  const cancel: Handover["cancel"] = async (cluster, launch) => {
    const last = cancelledAt.get(launch);
    if (last !== undefined && performance.now() - last < CANCEL_AGAIN_MS) return;
    cancelledAt.set(launch, performance.now());
    await cluster.provider(launch.user || undefined).cancel([launch.nativeId]);
    soon(launch.cluster);
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
      news.change(launch, { nativeId });
      log(
        `launch ${launch.id} was submitted to ${launch.cluster} as ${nativeId}${note === undefined ? "" : `: ${note}`}`,
      );
      soon(launch.cluster);
    } catch (error) {
      // a submission that timed out may have succeeded: look the job up by its name, as after a crash
      if (error instanceof CommandError && error.timedOut) {
        lost.add(launch.id);
        log(`launch ${launch.id}: ${error.message}; looking for it by its name`);
        return;
      }
      await endings.finish(launch, { state: "failed", raw: "refused", reason: refusalOf(error).slice(0, 2000) });
      throw error instanceof SlipwayError
        ? error
        : new SlipwayError("cluster-refused", { cluster: launch.cluster, detail: (error as Error).message }, error);
    } finally {
      submitting.delete(launch.id);
    }
    if (launch.cancelAsked > 0) await cancel(cluster, launch);
  };

  /** Nobody knows of it: it was never submitted. Submits it now, unless it is no longer wanted. */
  const beginAgain = (launch: Launch): Promise<void> =>
    launch.cancelAsked > 0
      ? endings.finish(launch, { state: "cancelled", reason: "cancelled before it was submitted" })
      : submit(launch).catch((error: unknown) => log(`launch ${launch.id}: ${(error as Error).message}`));

  return {
    submit,
    cancel,
    isLost: ({ id }) => lost.has(id) && !submitting.has(id),
    adopt: async (cluster, launches) => {
      const busy = new Set<number>();
      for (const { id, files } of launches) if (await isBeingSubmitted(files.script)) busy.add(id);
      // asked after looking at the processes: a submission that ended in between is in the listing
      const found = new Map(
        (await cluster.provider().list(`${cluster.settings.jobNamePrefix}_`)).map((job) => [job.name, job.nativeId]),
      );
      const notes = await Promise.all(launches.map((launch) => readNote(launch.files.nativeId)));
      for (const [i, launch] of launches.entries()) {
        const nativeId = found.get(launch.jobName) ?? idIn(notes[i]);
        if (nativeId === undefined && busy.has(launch.id)) continue;
        lost.delete(launch.id);
        if (nativeId === undefined) begin(launch, () => beginAgain(launch));
        else {
          news.change(launch, { nativeId });
          log(`launch ${launch.id} was found again as ${nativeId}`);
        }
      }
    },
  };
};
