import { appendFileSync, chmodSync, chownSync, copyFileSync, rmSync, writeFileSync } from "node:fs";
import type { Job } from "./job.ts";

/** A job's output: in the spool while it runs, copied to its paths at the end, as its user. */

const isRoot = process.getuid!() === 0;

const give = (path: string, job: Job, mode: number): void => {
  if (isRoot) chownSync(path, job.owner.uid, job.owner.gid);
  chmodSync(path, mode);
};

export interface OutputFiles {
  readonly stdout: string;
  readonly stderr: string;
}

const isDirect = (job: Job): boolean => job.request.keep.includes("d");

export const spoolFiles = (root: string, job: Job): OutputFiles => {
  const [out, error] = isDirect(job)
    ? [job.stdout, job.stderr]
    : [`${root}/spool/${job.id}.OU`, `${root}/spool/${job.id}.ER`];
  if (job.request.join === "oe") return { stdout: out, stderr: out };
  return job.request.join === "eo" ? { stdout: error, stderr: error } : { stdout: out, stderr: error };
};

export const makeSpool = (root: string, job: Job): OutputFiles => {
  const files = spoolFiles(root, job);
  for (const path of new Set([files.stdout, files.stderr])) {
    appendFileSync(path, "");
    give(path, job, 0o600);
  }
  return files;
};

/** Whether both files are where they should be. */
export const bringOutput = (root: string, job: Job): boolean => {
  const mode = 0o666 & ~Number.parseInt(job.request.umask ?? "077", 8);
  const files = spoolFiles(root, job);
  const wanted = new Map([
    [files.stdout, job.request.join === "eo" ? job.stderr : job.stdout],
    [files.stderr, job.request.join === "oe" ? job.stdout : job.stderr],
  ]);
  try {
    for (const [from, to] of wanted) {
      if (from !== to) copyFileSync(from, to);
      give(to, job, mode);
    }
  } catch {
    return false;
  }
  for (const [from, to] of wanted) if (from !== to) rmSync(from, { force: true });
  return true;
};

export const scriptPath = (root: string, job: Job): string => `${root}/jobs/${job.id}.SC`;
export const nodeFile = (root: string, job: Job): string => `${root}/aux/${job.id}`;

export const writeJobFiles = (root: string, job: Job): void => {
  writeFileSync(scriptPath(root, job), job.script);
  give(scriptPath(root, job), job, 0o700);
  const lines = job.hosts.flatMap((host, at) => Array<string>(job.chunks[at]!.mpiprocs).fill(`${host}\n`));
  writeFileSync(nodeFile(root, job), lines.join(""), { mode: 0o644 });
};

export const removeJobFiles = (root: string, job: Job): void => {
  rmSync(scriptPath(root, job), { force: true });
  rmSync(nodeFile(root, job), { force: true });
};
