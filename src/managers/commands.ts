import { spawn } from "node:child_process";
import { channel } from "node:diagnostics_channel";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SlipwayError } from "../errors.ts";

/**
 * The one place that executes a workload manager's commands: a bounded number at once, each with a time-out and a bound
 * on its output, never through a shell. What the manager says is transient is tried again with growing pauses.
 */

export interface CommandOptions {
  readonly input?: string;
  /** Added to the environment; undefined values are removed from it. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** In whose name, when not in the server's; see `CommandsOptions.become`. */
  readonly user?: string;
  readonly timeoutMs?: number;
  /**
   * The manager may have accepted a submission that timed out: it is not repeated here. The caller looks it up by its
   * name first (rule 3). It is tried again only where `isTransient`, knowing this, is sure that it was not accepted.
   */
  readonly once?: boolean;
}

export interface CommandResult {
  readonly argv: readonly string[];
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

export type RunCommand = (argv: readonly string[], options?: CommandOptions) => Promise<CommandResult>;

export interface CommandsOptions {
  /**
   * Whether this outcome may pass by itself: "Unable to contact slurm controller", qstat's 255. With `once` only what
   * was certainly not done may be called so: a reply that got lost is not.
   */
  readonly isTransient?: (result: CommandResult, options: CommandOptions) => boolean;
  /** The words that run a command as another user: `sudo -n -u alice …`. */
  readonly become?: (user: string, argv: readonly string[], env: Readonly<Record<string, string>>) => readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly mostAtOnce?: number;
  readonly timeoutMs?: number;
  /** Bytes; a listing of 100,000 jobs stays far below the default. */
  readonly mostOutput?: number;
  /** Pauses before further tries of a transient failure. */
  readonly pausesMs?: readonly number[];
}

/** A command that could not be started, or that did not end in time: what it did is unknown. */
export class CommandError extends Error {
  readonly argv: readonly string[];
  readonly timedOut: boolean;
  constructor(message: string, argv: readonly string[], timedOut: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "CommandError";
    this.argv = argv;
    this.timedOut = timedOut;
  }
}

const MOST_AT_ONCE = 4;
const TIMEOUT_MS = 60_000;
const PAUSES_MS = [200, 1000, 3000];
const MOST_OUTPUT = 256 * 1024 * 1024;

interface Bounds {
  readonly timeoutMs: number;
  readonly mostOutput: number;
}

const execute = (
  argv: readonly string[],
  options: CommandOptions,
  { timeoutMs, mostOutput }: Bounds,
): Promise<CommandResult> =>
  new Promise((resolve, reject) => {
    const child = spawn(argv[0]!, argv.slice(1), {
      cwd: options.cwd ?? "/",
      env: { ...process.env, LC_ALL: "C.UTF-8", ...options.env, PWD: options.cwd ?? "/" },
      // of its own group: what a wrapper started ends with it
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
    let size = 0;
    let timedOut = false;
    const end = (): void => {
      try {
        process.kill(-child.pid!, "SIGKILL");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") child.kill("SIGKILL");
      }
      // what left the group may keep the pipes open for ever
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const timer = setTimeout(() => {
      timedOut = true;
      end();
    }, timeoutMs);
    for (const name of ["stdout", "stderr"] as const)
      child[name].on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > mostOutput) end();
        else chunks[name].push(chunk);
      });
    // a command may end without reading its input
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input);
    child.once("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      const why = error.code === "ENOENT" ? "not found" : error.message;
      reject(new CommandError(`${argv[0]}: ${why}`, argv, false, error));
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      const [stdout, stderr] = [chunks.stdout, chunks.stderr].map((parts) => Buffer.concat(parts).toString("utf8"));
      if (size > mostOutput) reject(new CommandError(`${argv[0]}: printed more than ${mostOutput} bytes`, argv, false));
      else resolve({ argv, code, stdout: stdout!, stderr: stderr!, timedOut });
    });
  });

/** A command that has ended, for whoever counts them (node:diagnostics_channel): nothing is made where nobody listens. */
export interface CommandTold {
  readonly program: string;
  readonly ms: number;
  /** How it failed; undefined: it ended with exit code 0. */
  readonly failure: "exit" | "timeout" | "not-run" | undefined;
}

export const commandsTold = channel("slipway:command");

const tellOf = (argv: readonly string[], since: number, failure: CommandTold["failure"]): void => {
  if (!commandsTold.hasSubscribers) return;
  const told: CommandTold = { program: basename(argv[0]!), ms: performance.now() - since, failure };
  commandsTold.publish(told);
};

const failureOf = ({ code, timedOut }: CommandResult): CommandTold["failure"] =>
  timedOut ? "timeout" : code === 0 ? undefined : "exit";

const definedOf = (env: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));

export const createCommands = (settings: CommandsOptions = {}): RunCommand => {
  const most = settings.mostAtOnce ?? MOST_AT_ONCE;
  const pauses = settings.pausesMs ?? PAUSES_MS;
  let running = 0;
  const waiting: (() => void)[] = [];

  const enter = async (): Promise<void> => {
    if (running < most) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  };

  return async (argv, options = {}) => {
    const env = { ...settings.env, ...options.env };
    if (options.user !== undefined && settings.become === undefined)
      throw new CommandError(`${argv[0]}: nothing says how to act as ${options.user}`, argv, false);
    const words = options.user === undefined ? argv : settings.become!(options.user, argv, definedOf(env));
    const timeoutMs = options.timeoutMs ?? settings.timeoutMs ?? TIMEOUT_MS;
    const mostOutput = settings.mostOutput ?? MOST_OUTPUT;
    for (let tried = 0; ; tried += 1) {
      await enter();
      let result: CommandResult;
      const since = performance.now();
      try {
        result = await execute(words, { ...options, env }, { timeoutMs, mostOutput });
        tellOf(argv, since, failureOf(result));
      } catch (error) {
        tellOf(argv, since, "not-run");
        throw error;
      } finally {
        leave();
      }
      const pause = pauses[tried];
      const again = result.timedOut ? options.once !== true : (settings.isTransient?.(result, options) ?? false);
      if (again && pause !== undefined) await sleep(pause * (1 + Math.random() / 4));
      else if (result.timedOut)
        throw new CommandError(`${argv[0]} did not answer within ${timeoutMs / 1000} s`, argv, true);
      else return result;
    }
  };
};

/**
 * The same for a driver: what could not be run, or did not end, rejects as `cluster-unreachable`. But a submission
 * that did not end may have been accepted: that stays a CommandError.
 */
export const reaching =
  (run: RunCommand, cluster: string): RunCommand =>
  async (argv, options = {}) => {
    try {
      return await run(argv, options);
    } catch (error) {
      if (!(error instanceof CommandError) || (error.timedOut && options.once === true)) throw error;
      throw new SlipwayError("cluster-unreachable", { cluster, detail: error.message }, error);
    }
  };
