import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, chown, cp, mkdir, mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { REFUSED_MOVES } from "../../src/server/refused-moves.ts";
import { processesUnder } from "./processes-under.ts";

/**
 * The command line as users have it: `bin/slipway` in a process of its own, with a home, a working directory and a
 * temporary directory that nothing else uses. `cleanup` proves that nothing is left of it.
 */

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const TIMEOUT_MS = 60_000;
/** How long processes may take to end after `down --now`. */
const ENDING_MS = 20_000;
/** Output beyond this is a bug in the test or in Slipway. */
const MOST_OUTPUT = 256 * 1024 * 1024;

export interface RunOptions {
  readonly stdin?: string | Uint8Array;
  /** Added to the environment; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly timeoutMs?: number;
}

export interface Outcome {
  /** The exit status; null when a signal ended it. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that is still running. */
export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Outcome>;
  /** Resolves when its output so far matches; rejects if it ended without a match. */
  saw(pattern: RegExp, stream?: "stdout" | "stderr"): Promise<RegExpExecArray>;
}

export interface SlipwayHome {
  readonly home: string;
  /** Where commands are typed, unless they say otherwise. */
  readonly cwd: string;
  /** TMPDIR of all its processes. */
  readonly tmp: string;
  /** Everything of this home is below it. */
  readonly root: string;
  /** Gives what the test made to the home's user. */
  own(path: string): Promise<void>;
  start(args: readonly string[], options?: RunOptions): Started;
  run(args: readonly string[], options?: RunOptions): Promise<Outcome>;
  /** Runs with --json and parses the one document; throws unless the exit status is among `statuses`. */
  json<T = unknown>(
    args: readonly string[],
    options?: RunOptions & { readonly statuses?: readonly number[] },
  ): Promise<T>;
  /** What the server has logged so far. */
  serverLog(): Promise<string>;
  /** `down --now`, then fails if a process or scratch is left (but ends it all the same), then removes everything. */
  cleanup(): Promise<void>;
}

const environment = (base: Readonly<Record<string, string>>, options: RunOptions): NodeJS.ProcessEnv => {
  const env: NodeJS.ProcessEnv = { ...process.env };
  // The machine's own settings, vitest's, and those of a Slipway around this test must not leak in.
  for (const name of Object.keys(env))
    if (/^(SLIPWAY_|VITEST|NODE_OPTIONS$|NO_COLOR$|FORCE_COLOR$|XDG_RUNTIME_DIR$)/.test(name)) delete env[name];
  for (const [name, value] of Object.entries({ ...base, ...options.env }))
    if (value === undefined) delete env[name];
    else env[name] = value;
  return env;
};

const describe = (args: readonly string[], { status, signal, stdout, stderr }: Outcome): string =>
  `slipway ${args.join(" ")}: ${signal ?? `exit status ${status}`}\n--- stdout\n${stdout.slice(-4000)}\n--- stderr\n${stderr.slice(-4000)}`;

/** Who types the commands, if not the user who runs the tests. */
interface Person {
  readonly uid: number;
  readonly gid: number;
}

interface Place {
  /** Where the product is installed. */
  readonly product: string;
  readonly cwd: string;
  readonly person?: Person;
}

const startProcess = (args: readonly string[], env: NodeJS.ProcessEnv, place: Place, options: RunOptions): Started => {
  const child = spawn(process.execPath, [join(place.product, "bin", "slipway"), ...args], {
    cwd: options.cwd ?? place.cwd,
    env,
    stdio: "pipe",
    ...place.person,
  });
  const texts = { stdout: "", stderr: "" };
  const watchers = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8");
    child[name].on("data", (text: string) => {
      texts[name] += text;
      if (texts[name].length > MOST_OUTPUT) child.kill("SIGKILL");
      for (const look of watchers) look();
    });
  }
  // A command that ends without reading its input is not an error of the test.
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.stdin);
  let overdue = false;
  const limit = options.timeoutMs ?? TIMEOUT_MS;
  const timer = setTimeout(() => {
    overdue = true;
    child.kill("SIGKILL");
  }, limit);
  const ended = new Promise<Outcome>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status, signal) => {
      clearTimeout(timer);
      const outcome = { status, signal, ...texts };
      if (overdue) reject(new Error(`not over after ${limit} ms: ${describe(args, outcome)}`));
      else resolve(outcome);
    });
  });
  // Nobody need wait for a command that they start: then only `saw` or `cleanup` reports that it failed.
  ended.catch(() => undefined);
  return {
    child,
    ended,
    saw: (pattern, stream = "stdout") =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(texts[stream]);
          if (match === null) return;
          watchers.delete(look);
          resolve(match);
        };
        watchers.add(look);
        look();
        ended.then((outcome) => {
          look();
          if (watchers.delete(look)) reject(new Error(`${pattern} never appeared: ${describe(args, outcome)}`));
        }, reject);
      }),
  };
};

/** Waits until no process is left below a directory. Kills those that stay and names them in the error. */
const untilNoProcesses = async (root: string): Promise<void> => {
  const start = performance.now();
  let left = await processesUnder(root);
  while (left.length > 0 && performance.now() - start < ENDING_MS) {
    await sleep(50);
    left = await processesUnder(root);
  }
  if (left.length === 0) return;
  for (const { pid } of left) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
  throw new Error(`processes were left behind:\n${left.map(({ pid, command }) => `  ${pid} ${command}`).join("\n")}`);
};

/** What a site's administrator does for its users: a copy that they can read, wherever this one is. */
const installFor = async (root: string): Promise<string> => {
  const product = join(root, "slipway");
  for (const part of ["bin", "dist", "package.json"])
    await cp(join(ROOT, part), join(product, part), { recursive: true });
  return product;
};

/** Directories for the sockets of a home's servers: a server that was killed leaves its own. */
export const runtimeDirectoriesOf = async (home: string): Promise<string[]> => {
  const hash = createHash("sha256").update(home).digest("hex").slice(0, 12);
  const names = await readdir("/tmp");
  return names.filter((name) => name.startsWith("slipway-") && name.includes(hash)).map((name) => join("/tmp", name));
};

export interface HomeOptions {
  /** An account of this machine that types the commands and owns the home; needs root. */
  readonly user?: string;
  /** Where the home is, if not among the temporary files. */
  readonly under?: string;
}

export const createHome = async ({ user, under = tmpdir() }: HomeOptions = {}): Promise<SlipwayHome> => {
  const root = await mkdtemp(join(under, "slw-"));
  const [home, cwd, tmp] = [join(root, "home"), join(root, "work"), join(root, "tmp")];
  await Promise.all([mkdir(cwd), mkdir(tmp)]);
  let place: Place = { product: ROOT, cwd };
  if (user !== undefined) {
    const idOf = (flag: string): number => Number(execFileSync("id", [flag, user], { encoding: "utf8" }));
    const person = { uid: idOf("-u"), gid: idOf("-g") };
    place = { product: await installFor(root), cwd, person };
    await chmod(root, 0o755);
    for (const path of [root, cwd, tmp]) await chown(path, person.uid, person.gid);
  }
  // The last one reaches even tasks, which get no SLIPWAY_HOME: it shows whatever they leave behind.
  const base = { SLIPWAY_HOME: home, TMPDIR: tmp, NO_COLOR: "1", TEST_ROOT_OF_SLIPWAY: root };
  const names = user === undefined ? {} : { HOME: root, USER: user, LOGNAME: user };
  const running = new Set<Started>();

  const start = (args: readonly string[], options: RunOptions = {}): Started => {
    const started = startProcess(args, environment({ ...base, ...names }, options), place, options);
    running.add(started);
    const forget = (): void => void running.delete(started);
    started.ended.then(forget, forget);
    return started;
  };
  const run = (args: readonly string[], options: RunOptions = {}): Promise<Outcome> => start(args, options).ended;
  const serverLog = (): Promise<string> => readFile(join(home, "logs", "server.log"), "utf8").catch(() => "");

  return {
    home,
    cwd,
    tmp,
    root,
    own: async (path) => {
      if (place.person !== undefined) await chown(path, place.person.uid, place.person.gid);
    },
    start,
    run,
    json: async <T>(args: readonly string[], options: RunOptions & { readonly statuses?: readonly number[] } = {}) => {
      const end = args.indexOf("--");
      const at = end < 0 ? args.length : end;
      const words = [...args.slice(0, at), "--json", ...args.slice(at)];
      const outcome = await run(words, options);
      if (!(options.statuses ?? [0]).includes(outcome.status ?? -1)) throw new Error(describe(words, outcome));
      return JSON.parse(outcome.stdout) as T;
    },
    serverLog,
    cleanup: async () => {
      const problems: string[] = [];
      try {
        for (const { child } of running) child.kill("SIGKILL");
        const down = await run(["down", "--now"]);
        // 3: no server runs, which is just as good.
        if (down.status !== 0 && down.status !== 3) problems.push(describe(["down", "--now"], down));
        await untilNoProcesses(root);
        const scratch = await readdir(tmp);
        if (scratch.length > 0) problems.push(`left in TMPDIR: ${scratch.join(", ")}`);
      } catch (error) {
        problems.push((error as Error).message);
        await untilNoProcesses(root).catch(() => undefined);
      }
      const refused = (await serverLog()).split("\n").filter((line) => REFUSED_MOVES.test(line));
      problems.push(...refused);
      if (problems.length > 0) problems.push(`server.log:\n${(await serverLog()).slice(-4000)}`);
      for (const directory of await runtimeDirectoriesOf(home)) await rm(directory, { recursive: true, force: true });
      await rm(root, { recursive: true, force: true });
      if (problems.length > 0) throw new Error(problems.join("\n"));
    },
  };
};
