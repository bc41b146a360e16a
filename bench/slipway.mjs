// Slipway as users have it: bin/slipway with a home of its own, nothing else changed.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { environment, execute } from "./commands.mjs";
import { onCores } from "./cores.mjs";
import { childrenOf, cpuOf, isAlive } from "./cpu-time.mjs";

export const root = fileURLToPath(new URL("..", import.meta.url));

/** Where tasks get their TMPDIR by default. */
export const scratch = tmpdir();

const living = new Set();
let interrupted = false;

/** Closes what is still open, servers before what they depend on; for the end of an interrupted bench. */
export const closeAll = async () => {
  interrupted = true;
  // how it ends no longer matters
  while (living.size > 0)
    await [...living]
      .at(-1)
      .close({ checked: false })
      .catch(() => undefined);
};

/** Gives it its `close`, which `closeAll` calls too: the work is done once, and all callers wait for its end. */
export const keepOpen = (session, close) => {
  let closing;
  session.close = (options) => (closing ??= close(options).finally(() => living.delete(session)));
  living.add(session);
};

const profiling = (directory) =>
  directory === undefined
    ? {}
    : { SLIPWAY_PROFILE_DIR: directory, NODE_OPTIONS: `--import ${new URL("profiler.mjs", import.meta.url).href}` };

/**
 * A server of its own, started with `slipway up`, and everything else typed at its command line. `clusters` is the text
 * of its clusters.yaml; without it, the defaults apply; `env` is added to its environment. With `cores`, everything runs
 * on so many of them. `from` is another installation.
 */
export const openSlipway = async ({ dir, profile, clusters, env, cores, from = root }) => {
  if (interrupted) throw new Error("interrupted");
  const home = await mkdtemp(join(dir, ".slipway-bench-"));
  if (clusters !== undefined) await writeFile(join(home, "clusters.yaml"), clusters);
  /** Our options come before `--`: what follows is the task's. */
  const run = (args, options) => {
    const end = args.includes("--") ? args.indexOf("--") : args.length;
    const words = [join(from, "bin", "slipway"), ...args.slice(0, end), "--home", home, ...args.slice(end)];
    const [command, ...rest] = onCores(cores, words);
    return execute(command, rest, options);
  };
  const ask = async (verb, ...args) => {
    const { stdout, seconds } = await run([verb, "--json", ...args]);
    return { answer: JSON.parse(stdout), seconds };
  };

  const up = () => run(["up"], { env: { ...environment, ...env, ...profiling(profile) }, spared: true });
  const serverPid = async () => (await ask("status")).answer.server.pid;
  let server;

  /** The processes that do the work; the pilot appears with the first task. */
  const processes = async () => {
    const { answer } = await ask("status");
    const pilot = answer.pilots.find(({ state }) => state === "PMGR_ACTIVE");
    // the local provider's ids begin with the pid
    const pid = /^(\d+):/.exec(pilot?.nativeId ?? "")?.[1];
    const agent = pid === undefined ? undefined : Number(pid);
    return { server, agent, spawners: agent === undefined ? [] : childrenOf(agent) };
  };

  const session = {
    /** Light agents that are connected to it. */
    light: new Set(),
    home,
    /** Its pid; a different one after a restart. */
    get server() {
      return server;
    },
    ask,
    run,
    processes,
    /** Kills the server as a failing machine would. */
    kill: async () => {
      process.kill(server, "SIGKILL");
      while (isAlive(server)) await sleep(5);
    },
    /** Starts it again, and resolves with the seconds that `slipway up` took. */
    restart: async () => {
      const { seconds } = await up();
      server = await serverPid();
      return seconds;
    },
    /** What a task wrote, as `slipway logs` prints it. */
    logs: async (task) => (await run(["logs", task])).stdout,
  };
  const starting = up();
  /** Ends server and pilots, checks the journal they leave, and removes the home. */
  keepOpen(session, async ({ checked = true } = {}) => {
    await starting.catch(() => undefined);
    const { agent } = await processes().catch(() => ({}));
    for (const agents of session.light) await agents.close();
    await run(["down", "--now"], { spared: true }).catch((error) => {
      if (checked) throw error;
    });
    for (let waited = 0; agent !== undefined && isAlive(agent) && waited < 200; waited++) await sleep(50);
    try {
      if (checked) await run(["journal", "verify"]);
    } finally {
      await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    }
  });
  try {
    await starting;
    server = await serverPid();
  } catch (error) {
    await session.close({ checked: false });
    throw error;
  }
  return session;
};

/** Bytes that count in a server's journal: without its reserve, and what its last segment has prepared. */
export const journalBytes = async (slipway) => {
  const { stdout } = await slipway.run(["journal", "info", "--json"], { spared: true });
  const { segments, snapshot } = JSON.parse(stdout);
  return segments.reduce((sum, { length }) => sum + length, snapshot?.bytes ?? 0);
};

/** Which of the two spawners this installation has. */
export const spawnerHere = () => (existsSync(join(root, "dist", "slipway-spawner")) ? "native" : "Node");

/** CPU milliseconds of server, agent, spawners and the tasks they waited for, and of the commands of this bench. */
export const cpuNow = ({ server, agent, spawners }) => {
  const spawned = spawners.map(cpuOf);
  const sum = (list, key) => list.reduce((total, each) => total + each[key], 0);
  return {
    server: cpuOf(server).own,
    agent: agent === undefined ? 0 : cpuOf(agent).own,
    spawner: sum(spawned, "own"),
    tasks: sum(spawned, "children"),
    command: cpuOf(process.pid).children,
  };
};

/** Microseconds that each of them used per task between two readings. */
export const cpuPerTask = (before, after, tasks) =>
  Object.fromEntries(Object.keys(before).map((key) => [key, ((after[key] - before[key]) * 1000) / tasks]));
