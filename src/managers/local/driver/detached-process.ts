import { spawn } from "node:child_process";
import { once } from "node:events";
import { open, readFile, readdir } from "node:fs/promises";
import { constants } from "node:os";
import { setAside } from "../../../extra-authorities.ts";
import { isDead, statNow } from "../../../process-stat.ts";
import type { JobStatus } from "../../provider.ts";

/**
 * Jobs of this machine: detached processes in sessions of their own, which outlive the server and are found again by
 * the name in their command line. Their id is pid:start, so that a reused pid does not match.
 */

export type Ending = Pick<JobStatus, "outcome" | "exitCode" | "signal">;

export interface DetachedJob {
  readonly name: string;
  readonly command: readonly string[];
  readonly directory: string;
  /** A file that takes what it prints. */
  readonly log: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface StartedProcess {
  readonly id: string;
  /** Settles only while this process is the parent. */
  readonly ending: Promise<Ending>;
}

export const startDetached = async (job: DetachedJob): Promise<StartedProcess> => {
  const log = await open(job.log, "a", 0o600);
  try {
    // the start of a pilot that this server runs in is not that of its own
    const { SLIPWAY_PILOT_START: _, ...env } = process.env;
    const child = spawn(job.command[0]!, [...job.command.slice(1), "--job", job.name], {
      cwd: job.directory,
      env: { ...setAside(env), ...job.env },
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
    });
    const ending = new Promise<Ending>((resolve) =>
      child.once("exit", (code, signal) => {
        if (code === null) resolve({ outcome: "failed", signal: constants.signals[signal!] });
        else resolve({ outcome: code === 0 ? "done" : "failed", exitCode: code });
      }),
    );
    await once(child, "spawn");
    child.unref();
    const stat = statNow(child.pid ?? 0);
    return { id: `${child.pid}:${stat?.start ?? "0"}`, ending };
  } finally {
    await log.close();
  }
};

export const isAlive = (id: string): boolean => {
  const [pid = "", start] = id.split(":");
  const stat = statNow(pid);
  return !isDead(stat) && stat?.start === start;
};

/** Signals it, or all of its session's first group; it may already be gone. */
export const signalProcess = (id: string, signal: NodeJS.Signals, group = false): void => {
  if (!isAlive(id)) return;
  const pid = Number(id.split(":")[0]);
  try {
    process.kill(group ? -pid : pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
};

/** Living processes that were started so, with the names of their jobs. */
export const findDetached = async (
  isWanted: (name: string) => boolean,
): Promise<{ readonly name: string; readonly id: string }[]> => {
  const found: { name: string; id: string }[] = [];
  for (const pid of await readdir("/proc")) {
    const stat = /^\d+$/.test(pid) ? statNow(pid) : undefined;
    // most processes lead no session; what others have for a command line is not asked
    if (stat === undefined || isDead(stat) || stat.session !== pid) continue;
    const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
    const name = words[words.indexOf("--job") + 1];
    if (words.includes("--job") && name !== undefined && isWanted(name))
      found.push({ name, id: `${pid}:${stat.start}` });
  }
  return found;
};

/** The last lines of a job's log: what a user needs when it ended without a word. */
export const tailOf = async (path: string): Promise<string> => {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.trimEnd().split("\n").slice(-3).join(" | ").slice(-500);
};
