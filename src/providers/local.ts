import { spawn } from "node:child_process";
import { open, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { once } from "node:events";
import type { Resources } from "../core/resources.ts";
import type { JobStatus, Provider } from "./provider.ts";

/**
 * This machine as a cluster. A job is a detached process in a session of its own: it outlives the server and is found
 * again by its name, which stands in its command line. Its native id is pid:start, so that a pid used again is no match.
 */

export interface LocalOptions {
  readonly resources: () => Promise<Resources>;
}

/** Start time and state of a process (fields 22 and 3 of its stat), or undefined if there is none. */
const readStat = async (pid: string): Promise<{ start: string; state: string } | undefined> => {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0]!, start: fields[19]! };
  } catch {
    return undefined;
  }
};

const isAlive = async (nativeId: string): Promise<boolean> => {
  const [pid, start] = nativeId.split(":");
  const stat = pid === undefined ? undefined : await readStat(pid);
  return stat !== undefined && stat.start === start && stat.state !== "Z" && stat.state !== "X";
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
        const stat = await readStat(String(child.pid));
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
        const stat = await readStat(pid);
        if (stat !== undefined && stat.state !== "Z") found.push({ name, nativeId: `${pid}:${stat.start}` });
      }
      return found;
    },
  };
};
