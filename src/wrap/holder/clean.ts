import { rm } from "node:fs/promises";
import { SlipwayError } from "../../errors.ts";
import { endJobs } from "./end-jobs.ts";
import { ledgerPath, readLedger } from "./ledger.ts";
import { managerOf } from "./managers.ts";
import { jobNameOf, removeEntry, type WrapView } from "./registry.ts";
import { removeStatus } from "./status-file.ts";
import { removeTlsFiles } from "./tls-files.ts";

/** Ends what a wrapper that is gone has left: its jobs, its files. */
export const cleanLost = async (home: string, { id, statusFile }: WrapView): Promise<void> => {
  const left = await readLedger(statusFile);
  const manager = managerOf(left?.manager ?? null);
  if (left !== undefined && manager !== undefined) {
    const still = await endJobs({ manager, jobs: left.jobs, jobName: jobNameOf(id) });
    if (still.length > 0)
      throw new SlipwayError("wrap-failed", {
        detail: `jobs could not be cancelled: ${still.map((job) => job.id).join(", ")}`,
        remedy: "Try again when the workload manager answers.",
      });
  }
  await removeTlsFiles(statusFile);
  await removeStatus(statusFile);
  await rm(ledgerPath(statusFile), { force: true });
  await removeEntry(home, id);
};
