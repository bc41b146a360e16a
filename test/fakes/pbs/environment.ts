import type { PbsConfig } from "./config.ts";
import type { Job } from "./job.ts";
import { nodeFile } from "./output.ts";

/** What a job's processes find in their environment: little, unless it was submitted with -V. */

const common = (config: PbsConfig, job: Job, node: number, task: number, path: string): Record<string, string> => ({
  PATH: path,
  ...Object.fromEntries(job.variables.filter(([name]) => name !== "USER" || job.request.allVariables)),
  HOME: job.owner.home,
  LOGNAME: job.owner.user,
  PBS_JOBNAME: job.name,
  PBS_JOBID: job.id,
  PBS_QUEUE: job.queue,
  PBS_JOBCOOKIE: job.cookie,
  PBS_NODENUM: String(node),
  PBS_TASKNUM: String(task),
  PBS_MOMPORT: "15003",
  PBS_NODEFILE: nodeFile(config.root, job),
  PBS_JOBDIR: job.owner.home,
  PBS_ENVIRONMENT: "PBS_BATCH",
  ENVIRONMENT: "BATCH",
  ...(job.arrayIndex === undefined ? {} : { PBS_ARRAY_INDEX: String(job.arrayIndex), PBS_ARRAY_ID: job.arrayId ?? "" }),
});

/** The cpus of one chunk, whatever else the job has on that node. */
const cpus = (job: Job, node: number): Record<string, string> => {
  const host = [...new Set(job.hosts)][node];
  const ncpus = String(job.chunks[job.hosts.indexOf(host ?? "")]?.ncpus ?? 1);
  return { NCPUS: ncpus, OMP_NUM_THREADS: ncpus };
};

export const scriptEnvironment = (config: PbsConfig, job: Job): Record<string, string> => {
  return {
    ...common(config, job, 0, 1, "/usr/local/bin:/usr/bin:/bin"),
    USER: job.owner.user,
    SHELL: job.owner.shell,
    ...cpus(job, 0),
  };
};

/** The environment of what pbs_tmrsh and pbsdsh start: nothing that the script exported. */
export const taskEnvironment = (config: PbsConfig, job: Job, node: number, task: number): Record<string, string> => ({
  ...common(config, job, node, task, "/bin:/usr/bin"),
  ...cpus(job, node),
});
