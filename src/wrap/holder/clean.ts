import { access } from "node:fs/promises";
import { dirname } from "node:path";
import { SlipwayError } from "../../errors.ts";
import { endJobs } from "./end-jobs.ts";
import { claimLedger } from "./ledger.ts";
import { managerOf } from "./managers.ts";
import { jobNameOf, removeEntry, type WrapView } from "./registry.ts";
import { removeStatus } from "./status-file.ts";
import { removeTlsFiles } from "./tls-files.ts";

/** Ends what a wrapper that is gone has left: its jobs, its files. `endServer`: what ends a server of its own, and its pilots. */
export const cleanLost = async (
  home: string,
  { id, statusFile, head, jobs = [] }: WrapView,
  endServer: (id: string) => Promise<void>,
): Promise<void> => {
  const isThere = await access(dirname(statusFile)).then(
    () => true,
    () => false,
  );
  // rejects where another start has taken it over meanwhile
  const ledger = isThere ? await claimLedger(statusFile) : undefined;
  // somebody may have removed the directory; the home knows of the jobs too
  const left = ledger?.left ?? {
    manager: head?.manager ?? null,
    jobs: jobs.map((job) => ({ id: job.id, cancel: null })),
  };
  await endServer(id);
  const manager = managerOf(left.manager);
  if (manager !== undefined) {
    const still = await endJobs({ manager, jobs: left.jobs, jobName: jobNameOf(id) });
    if (still.length > 0)
      throw new SlipwayError("wrap-failed", {
        detail: `jobs could not be cancelled: ${still.map((job) => job.id).join(", ")}`,
        remedy: "Try again when the workload manager answers.",
      });
  }
  await removeTlsFiles(statusFile);
  await removeStatus(statusFile);
  await ledger?.release();
  await removeEntry(home, id);
};
