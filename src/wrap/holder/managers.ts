import { clusterNamed, combineClusters, readClustersFile } from "../../config/clusters-file.ts";
import { createCommands, type RunCommand } from "../../managers/commands.ts";
import { type ClusterType, MANAGERS } from "../../managers/managers.ts";
import type { JobStatus, Provider } from "../../managers/provider.ts";
import { createProvider } from "../../managers/registry.ts";
import { waitingOf } from "../../managers/waiting-words.ts";
import type { LedgerJob } from "./ledger.ts";

/** What is asked of a workload manager about jobs that somebody else has submitted. */
export interface JobManager {
  /** Absent where there is no driver: then nothing is known of a job before its worker connects. */
  readonly poll?: Provider["poll"];
  readonly list?: Provider["list"];
  cancel(jobs: readonly LedgerJob[]): Promise<void>;
  /** Why a job has not begun, in the manager's words and in plain ones. */
  readonly says?: (status: JobStatus) => string;
}

/** The manager whose commands are on the PATH, as dask-jobqueue finds it too. */
const driverOf = (type: string): Provider | undefined => {
  if (!Object.hasOwn(MANAGERS, type) || !("batch" in MANAGERS[type as ClusterType])) return undefined;
  const layer = readClustersFile(`clusters: {here: {type: ${type}}}`, "wrap");
  return createProvider(clusterNamed(combineClusters([layer]), "here"));
};

/** Managers without a driver are told with the command that dask-jobqueue itself would use. */
const byCommand = (run: RunCommand): JobManager => ({
  cancel: async (jobs) => {
    for (const { id, cancel } of jobs) {
      const words = (cancel ?? "").split(" ").filter((word) => word !== "");
      // one that has ended meanwhile is refused, and the others must still go
      if (words.length > 0) await run([...words, id]).catch(() => undefined);
    }
  },
});

/** By the name of dask-jobqueue's section. Undefined: a cluster without jobs. */
export const managerOf = (name: string | null, run = createCommands()): JobManager | undefined => {
  // its jobs are processes that this machine ends with their scheduler
  if (name === null || name === "local") return undefined;
  const provider = driverOf(name);
  if (provider === undefined) return byCommand(run);
  return {
    poll: (ids) => provider.poll(ids),
    list: (prefix) => provider.list(prefix),
    cancel: (jobs) => provider.cancel(jobs.map(({ id }) => id)),
    says: (status) => waitingOf(MANAGERS[name as ClusterType], status).text,
  };
};
