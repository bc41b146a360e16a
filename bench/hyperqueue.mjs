// HyperQueue as users have it: `hq` on PATH, its server with a journal as ours, one worker on this machine.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { attempt, environment, execute, findProgram } from "./commands.mjs";
import { Skipped } from "./rounds.mjs";
import { keepOpen } from "./slipway.mjs";

const START_MS = 20_000;

/** Throws Skipped where it is not installed. */
export const openHyperQueue = async ({ dir, cpus }) => {
  const hq = findProgram("hq");
  if (hq === undefined) throw new Skipped("no `hq` on PATH");
  const home = await mkdtemp(join(dir, ".slipway-bench-hq-"));
  const journal = join(home, "journal");
  const words = (...more) => ["--server-dir", join(home, "server"), ...more];
  const start = (...more) => spawn(hq, words(...more), { env: environment, cwd: home, stdio: "ignore" });
  const ask = (...more) => execute(hq, words(...more), { cwd: home });
  const server = start("server", "start", "--journal", journal);
  const children = [server];
  const session = {
    version: (await execute(hq, ["--version"])).stdout.trim().split(" ").at(-1),
    server: server.pid,
    /** Bytes that it has written for a successor. */
    kept: async () => (await stat(journal)).size,
    run: (count) => ask("submit", "--wait", "--array", `1-${count}`, "--stdout=none", "--stderr=none", "/bin/true"),
  };
  keepOpen(session, async () => {
    await attempt(hq, words("server", "stop"), { cwd: home }).catch(() => undefined);
    for (const child of children) {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, "exit");
        if ((await Promise.race([exited, sleep(5000, "late")])) === "late") child.kill("SIGKILL");
        await exited;
      }
    }
    await rm(home, { recursive: true, force: true });
  });
  try {
    const until = performance.now() + START_MS;
    while ((await attempt(hq, words("server", "info"), { cwd: home })).status !== 0) {
      if (performance.now() > until) throw new Error("HyperQueue's server does not answer");
      await sleep(50);
    }
    children.push(start("worker", "start", `--cpus=${cpus}`));
  } catch (error) {
    await session.close();
    throw error;
  }
  return session;
};
