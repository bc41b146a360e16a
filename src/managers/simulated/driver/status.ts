import { tailOf } from "../../local/driver/detached-process.ts";
import type { JobStatus } from "../../provider.ts";
import type { SimulatedJob } from "./model.ts";
import { logFile } from "./processes.ts";

const RAW: Readonly<Record<string, string>> = { held: "HELD", queued: "QUEUED", active: "RUNNING" };

/** How a simulated job does; where it failed without a reason of the model's, with the end of what it printed. */
export const statusOf = async (job: SimulatedJob | undefined): Promise<JobStatus> => {
  if (job === undefined) return { state: "ended", raw: "gone", outcome: "unknown" };
  const hosts = job.hosts.length === 0 ? {} : { hosts: job.hosts };
  if (job.state !== "ended") return { state: job.state, raw: RAW[job.state]!, ...hosts };
  const outcome = job.outcome ?? "unknown";
  const said = job.reason ?? (outcome === "done" ? "" : await tailOf(logFile(job)));
  return {
    state: "ended",
    raw: outcome.toUpperCase(),
    outcome,
    ...hosts,
    ...(said === "" ? {} : { reason: said }),
    ...(job.exitCode === undefined ? {} : { exitCode: job.exitCode }),
  };
};
