import { spawn } from "node:child_process";
import { open, readFile, readdir, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import type { Resources } from "../core/resources.ts";
import { isDead, readProcessStat } from "../process-stat.ts";
import type { JobStatus, Provider } from "./provider.ts";

/**
 * This machine as a cluster. A job is a detached process in a session of its own: it outlives the server and is found
 * again by its name, which stands in its command line. Its native id is pid:start, so that a pid used again is no match.
 */

export interface LocalOptions {
  readonly resources: () => Promise<Resources>;
}

const isAlive = async (nativeId: string): Promise<boolean> => {
  const [pid = "", start] = nativeId.split(":");
  const stat = await readProcessStat(pid);
  return !isDead(stat) && stat?.start === start;
};

/** The last lines of a job's log: what a user needs when it ended without a word. */
const tailOf = async (path: string): Promise<string> => {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.trimEnd().split("\n").slice(-3).join(" | ").slice(-500);
};

type Ending = Pick<JobStatus, "outcome" | "exitCode" | "signal">;

/** What is known of a job while its process is this one's child; a successor knows only that it lives or not. */
interface OwnJob {
  readonly directory: string;
  readonly ending: Promise<Ending>;
  isCancelled: boolean;
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
      const log = await open(join(job.directory, "agent.log"), "a", 0o600);
      try {
        // the start of a pilot that this server runs in is not that of its own
        const { SLIPWAY_PILOT_START: _, ...env } = process.env;
        const child = spawn(job.command[0]!, [...job.command.slice(1), "--job", job.name], {
          cwd: job.directory,
          env,
          detached: true,
          stdio: ["ignore", log.fd, log.fd],
        });
        const exit = new Promise<Ending>((resolve) =>
          child.once("exit", (code, signal) => {
            if (code === null) resolve({ outcome: "failed", signal: constants.signals[signal!] });
            else resolve({ outcome: code === 0 ? "done" : "failed", exitCode: code });
          }),
        );
        await once(child, "spawn");
        child.unref();
        const stat = await readProcessStat(child.pid ?? 0);
        const nativeId = `${child.pid}:${stat?.start ?? "0"}`;
        keep(nativeId, { directory: job.directory, ending: exit, isCancelled: false });
        await writeFile(join(job.directory, "native-id"), `${nativeId}\n`, { mode: 0o600 });
        return { nativeId };
      } finally {
        await log.close();
      }
    },

    poll: async (nativeIds) => {
      const answers = new Map<string, JobStatus>();
      for (const id of nativeIds) {
        if (await isAlive(id)) answers.set(id, { state: "active", raw: "running" });
        else {
          const job = own.get(id);
          const reason = job === undefined ? "" : await tailOf(join(job.directory, "agent.log"));
          const ending: Ending = (await job?.ending) ?? { outcome: "unknown" };
          answers.set(id, {
            state: "ended",
            raw: "gone",
            ...ending,
            ...(job?.isCancelled === true ? { outcome: "cancelled" } : {}),
            ...(reason === "" ? {} : { reason }),
          });
        }
      }
      return answers;
    },

    cancel: async (nativeIds) => {
      for (const id of nativeIds) {
        if (!(await isAlive(id))) continue;
        const job = own.get(id);
        if (job !== undefined) job.isCancelled = true;
        try {
          process.kill(Number(id.split(":")[0]), "SIGTERM");
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
        }
      }
    },

    list: async (namePrefix) => {
      const found: { name: string; nativeId: string }[] = [];
      for (const pid of await readdir("/proc")) {
        if (!/^\d+$/.test(pid)) continue;
        const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
        const name = words[words.indexOf("--job") + 1];
        if (!words.includes("--job") || name === undefined || !name.startsWith(namePrefix)) continue;
        const stat = await readProcessStat(pid);
        if (!isDead(stat)) found.push({ name, nativeId: `${pid}:${stat!.start}` });
      }
      return found;
    },
  };
};
