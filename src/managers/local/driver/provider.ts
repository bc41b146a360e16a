import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Resources } from "../../../core/resources.ts";
import { findDetached, isAlive, signalProcess, startDetached, tailOf, type Ending } from "./detached-process.ts";
import type { JobStatus, Provider } from "../../provider.ts";

/** This machine as a cluster: a job is a detached process, and its native id the process's. */

export interface LocalOptions {
  readonly resources: () => Promise<Resources>;
}

/** What is known of a job while its process is this one's child; a successor knows only that it lives or not. */
interface OwnJob {
  readonly directory: string;
  readonly ending: Promise<Ending>;
  isCanceled: boolean;
}

/** Jobs of this machine are few; those that ended long ago are forgotten. */
const MOST_KEPT = 1000;

export const createLocalProvider = (options: LocalOptions): Provider => {
  const own = new Map<string, OwnJob>();
  const keep = (nativeId: string, job: OwnJob): void => {
    own.set(nativeId, job);
    if (own.size > MOST_KEPT) own.delete(own.keys().next().value!);
  };
  return {
    describe: async () => ({ version: "this machine", largest: await options.resources() }),

    submit: async (job) => {
      const { id, ending } = await startDetached({ ...job, log: join(job.directory, "agent.log") });
      keep(id, { directory: job.directory, ending, isCanceled: false });
      await writeFile(join(job.directory, "native-id"), `${id}\n`, { mode: 0o600 });
      return { nativeId: id };
    },

    poll: async (nativeIds) => {
      const answers = new Map<string, JobStatus>();
      for (const id of nativeIds) {
        if (isAlive(id)) answers.set(id, { state: "active", raw: "running" });
        else {
          const job = own.get(id);
          const reason = job === undefined ? "" : await tailOf(join(job.directory, "agent.log"));
          const ending: Ending = (await job?.ending) ?? { outcome: "unknown" };
          answers.set(id, {
            state: "ended",
            raw: "gone",
            ...ending,
            ...(job?.isCanceled === true ? { outcome: "cancelled" } : {}),
            ...(reason === "" ? {} : { reason }),
          });
        }
      }
      return answers;
    },

    cancel: async (nativeIds) => {
      for (const id of nativeIds) {
        if (!isAlive(id)) continue;
        const job = own.get(id);
        if (job !== undefined) job.isCanceled = true;
        signalProcess(id, "SIGTERM");
      }
    },

    list: async (namePrefix) =>
      (await findDetached((name) => name.startsWith(namePrefix))).map(({ name, id }) => ({ name, nativeId: id })),
  };
};
