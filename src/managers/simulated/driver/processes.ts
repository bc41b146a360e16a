import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { findDetached, isAlive, signalProcess, startDetached } from "../../local/driver/detached-process.ts";
import { SIMULATED_ARRAY } from "../options.ts";
import type { SimulatedJob } from "./model.ts";

/** The real processes of simulated jobs: the job's command once for each of its nodes. */

/** Keeps the exit status for later; signals pass it by and reach the command. */
const KEEP_STATUS = `trap : TERM INT HUP USR1 USR2
"$@"
status=$?
echo "$status" >"$0.part" && mv "$0.part" "$0"
exit "$status"`;

/** Elements of an array share a directory. */
const ownFile = ({ directory, array }: SimulatedJob, name: string): string =>
  join(directory, array === undefined ? name : `${name}.${array.element}`);

const statusFile = (job: SimulatedJob, host: string): string => ownFile(job, `exit-status.${host}`);

/** Takes what its processes print. */
export const logFile = (job: SimulatedJob): string => ownFile(job, "agent.log");

/** Their ids, one for each host. */
export const startJob = async (job: SimulatedJob): Promise<string[]> => {
  const ids: string[] = [];
  for (const host of job.hosts) {
    const { id } = await startDetached({
      name: job.name,
      command: ["/bin/sh", "-c", KEEP_STATUS, statusFile(job, host), ...job.command],
      directory: job.directory,
      log: logFile(job),
      env: {
        SLIPWAY_SIMULATED_NODE: host,
        SLIPWAY_PILOT_START: String(Math.floor(job.startedAt! / 1000)),
        ...(job.array === undefined ? {} : { [SIMULATED_ARRAY.variable]: String(job.array.element) }),
      },
    });
    ids.push(id);
  }
  return ids;
};

export const endJob = (job: SimulatedJob, isHard: boolean): void => {
  for (const id of job.processes) signalProcess(id, isHard ? "SIGKILL" : "SIGTERM", true);
};

export const isJobAlive = (job: SimulatedJob): boolean => job.processes.some(isAlive);

/** Processes of a job whose ids nobody wrote down before the end of the server that started them. */
export const findProcesses = async (job: SimulatedJob): Promise<string[]> => {
  const found = await findDetached((name) => name === job.name);
  const files = job.hosts.map((host) => statusFile(job, host));
  // the shells that keep the status, not the commands below them, nor those of other elements
  const own: string[] = [];
  for (const { id } of found) {
    const words = (await readFile(`/proc/${id.split(":")[0]}/cmdline`, "utf8").catch(() => "")).split("\0");
    if (words[0] === "/bin/sh" && words[2] === KEEP_STATUS && files.includes(words[3] ?? "")) own.push(id);
  }
  return own;
};

/** The worst exit status of its processes; undefined when one of them left none. */
export const exitCodeOf = async (job: SimulatedJob): Promise<number | undefined> => {
  let worst = 0;
  for (const host of job.hosts) {
    const text = await readFile(statusFile(job, host), "utf8").catch(() => "");
    if (!/^\d{1,3}\n$/.test(text)) return undefined;
    worst = Math.max(worst, Number(text));
  }
  return worst;
};
