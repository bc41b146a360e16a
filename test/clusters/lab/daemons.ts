import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { isDead, readProcessStat } from "../../../src/process-stat.ts";
import { until } from "../../until.ts";
import type { RunCommand } from "../../../src/managers/commands.ts";

/** Daemons of a booted cluster: each dies with the test's process, however that ends, and a zombie counts as dead. */
export interface Daemon {
  readonly pid: number;
  /** What it has printed so far. */
  readonly log: string;
  hasEnded(): boolean;
  /** Resolves when it is dead. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

export const untilDead = (pid: number | string): Promise<true> =>
  until(`the end of process ${pid}`, async () => isDead(await readProcessStat(pid)));

/** The processes that a process started and that are still its children. */
export const childrenOf = async (pid: number): Promise<string[]> => {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return text.split(" ").filter((word) => word !== "");
};

export interface DaemonOptions {
  readonly log: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /**
   * The account it runs as; set before it is tied to the test's process, because a change of user would cut the tie.
   */
  readonly user?: string;
  /**
   * Ctrl-C does not reach it: whoever started it ends it after what depends on it. Not for a daemon that changes its
   * user itself, which cuts its tie to the test's process.
   */
  readonly ownSession?: boolean;
}

/** Starts a program that stays in the foreground. */
export const startDaemon = async (argv: readonly string[], options: DaemonOptions): Promise<Daemon> => {
  const become =
    options.user === undefined ? [] : [`--reuid=${options.user}`, `--regid=${options.user}`, "--clear-groups"];
  const output = openSync(options.log, "a", 0o644);
  let child: ChildProcess;
  try {
    child = spawn("setpriv", ["--pdeathsig", "KILL", ...become, ...argv], {
      cwd: options.cwd ?? "/",
      env: { ...process.env, ...options.env },
      detached: options.ownSession === true,
      stdio: ["ignore", output, output],
    });
    await once(child, "spawn");
  } finally {
    closeSync(output);
  }
  const pid = child.pid!;
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    pid,
    log: options.log,
    hasEnded,
    kill: async (signal = "SIGKILL") => {
      const children = await childrenOf(pid);
      if (!hasEnded()) {
        const ended = once(child, "exit");
        child.kill(signal);
        // a daemon that does not listen is killed all the same
        const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
        await ended;
        clearTimeout(timer);
      }
      for (const one of children) await untilDead(one);
    },
  };
};

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "0.0.0.0", exclusive: true }, () => server.close(() => resolve(true)));
  });

/**
 * Ports on which nobody listens, below those that the kernel gives to outgoing connections; random, so that clusters
 * that run side by side do not collide.
 */
export const freePorts = async (count: number): Promise<number[]> => {
  const found = new Set<number>();
  while (found.size < count) {
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    if (!found.has(port) && (await isFree(port))) found.add(port);
  }
  return [...found];
};

/** Runs commands that must succeed; resolves with what they print. */
export const mustRun =
  (run: RunCommand) =>
  async (argv: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(argv);
    if (code !== 0) throw new Error(`${argv.join(" ")}: ${code}: ${stderr}`);
    return stdout;
  };
