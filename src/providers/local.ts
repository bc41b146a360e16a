import { spawn } from "node:child_process";
import { open, readFile, readdir, writeFile } from "node:fs/promises";
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

export const createLocalProvider = (options: LocalOptions): Provider => {
  const directories = new Map<string, string>();
  return {
    describe: async () => ({ version: "this machine", largest: await options.resources() }),

    submit: async (job) => {
      const log = await open(join(job.directory, "agent.log"), "a", 0o600);
      try {
        const child = spawn(job.command[0]!, [...job.command.slice(1), "--job", job.name], {
          cwd: job.directory,
          detached: true,
          stdio: ["ignore", log.fd, log.fd],
        });
        await once(child, "spawn");
        child.unref();
        const stat = await readProcessStat(child.pid ?? 0);
        const nativeId = `${child.pid}:${stat?.start ?? "0"}`;
        directories.set(nativeId, job.directory);
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
          const directory = directories.get(id);
          const reason = directory === undefined ? "" : await tailOf(join(directory, "agent.log"));
          answers.set(id, { state: "ended", raw: "gone", ...(reason === "" ? {} : { reason }) });
        }
      }
      return answers;
    },

    cancel: async (nativeIds) => {
      for (const id of nativeIds) {
        if (!(await isAlive(id))) continue;
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
