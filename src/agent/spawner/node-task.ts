import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, closeSync, constants, openSync, statSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { findCommand } from "../../find-program.ts";
import { type Capture, createCapture, type Gate } from "./capture.ts";
import { errnoNumber } from "./events.ts";
import type { FifoPool } from "./fifo-pool.ts";
import { pinPrefix } from "./pin.ts";
import type { Stage, StartRequest } from "./protocol.ts";
import { joinCgroup, makeCgroup } from "./task-cgroup.ts";
import type { Tmpdirs } from "./tmpdirs.ts";

/** One task of the Node spawner. */
export interface NodeTask {
  readonly request: StartRequest;
  readonly captures: Capture[];
  readonly startedAt: number;
  /** The main process, also the number of its group and session; 0 when none was started. */
  pid: number;
  endedAt: number;
  /** The main process has ended. */
  left: boolean;
  code: number | null;
  signal: number | null;
  failure: { readonly stage: Stage; readonly errno: number } | null;
  ending: boolean;
  /** On performance.now(): when the grace of an ending task is over. */
  deadline: number;
  timer: NodeJS.Timeout | undefined;
  tmpdir: string | null;
  cgroup: string | null;
  /** Bytes; 0 if it has no cgroup, or one that does not count memory. */
  cgroupPeak: number;
  oomKills: number;
  /** Rounds of the sweep so far, and whom it killed. */
  rounds: number;
  readonly killed: Set<number>;
}

export interface StartContext {
  readonly pool: FifoPool;
  readonly gate: Gate;
  /** Of this task alone. */
  readonly env: Record<string, string>;
  readonly tmpdirs: Tmpdirs;
  output(task: NodeTask, fd: 1 | 2, chunk: Buffer): void;
  /** The main process has ended, or never started. Never called before startTask returns. */
  ended(task: NodeTask): void;
}

class StartError extends Error {
  readonly stage: Stage;
  readonly errno: number;

  constructor(stage: Stage, code: string | undefined) {
    super(stage);
    this.stage = stage;
    this.errno = errnoNumber(code);
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

const epochMs = (): number => performance.timeOrigin + performance.now();

/** Runs one step of a start; what it throws becomes the stage of the failure. */
const step = <T>(stage: Stage, action: () => T): T => {
  try {
    return action();
  } catch (error) {
    throw new StartError(stage, codeOf(error));
  }
};

/**
 * Without O_NONBLOCK a FIFO that nobody reads would block the whole loop. (Only for FIFOs, since Node cannot clear the
 * flag.)
 */
const openOutput = (path: string, append: boolean): number => {
  const mode = append ? constants.O_APPEND : constants.O_TRUNC;
  const flags = constants.O_WRONLY | constants.O_CREAT | mode | constants.O_NOCTTY;
  if (statSync(path, { throwIfNoEntry: false })?.isFIFO() === true)
    closeSync(openSync(path, flags | constants.O_NONBLOCK));
  return openSync(path, flags, 0o666);
};

const LACKING = new Set(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE"]);

/** The task's command as a shell would find it, or the code of the error. */
const findIn = (env: StartContext["env"], { argv, cwd }: StartRequest): ReturnType<typeof findCommand> =>
  findCommand(argv[0]!, env["PATH"] ?? "/bin:/usr/bin", cwd);

/**
 * Node does not say whether chdir or exec failed, and searches with execvp, which says EACCES if it may not enter a
 * directory on the way.
 */
const spawnFailure = (request: StartRequest, env: StartContext["env"], error: unknown): StartError => {
  const code = codeOf(error) === "ERR_INVALID_ARG_VALUE" ? "ENOENT" : codeOf(error);
  if (code !== undefined && LACKING.has(code)) return new StartError("fork", code);
  try {
    if (!statSync(request.cwd).isDirectory()) return new StartError("cwd", "ENOTDIR");
    accessSync(request.cwd, constants.X_OK);
  } catch (reason) {
    return new StartError("cwd", codeOf(reason));
  }
  const found = code === "EACCES" ? findIn(env, request) : { code };
  return new StartError("exec", "code" in found ? found.code : code);
};

const begin = (task: NodeTask, context: StartContext, opened: number[]): ChildProcess => {
  const { request } = task;
  if (request.tmpdir !== null) {
    task.tmpdir = step("tmpdir", () => context.tmpdirs.make(request.tmpdir!));
    context.env["TMPDIR"] = task.tmpdir;
  }
  const openEnd = (fd: 1 | 2, path: string | null): number => {
    if (path !== null) return step(fd === 1 ? "stdout" : "stderr", () => openOutput(path, request.append));
    const pipe = step("fork", () => context.pool.take());
    task.captures.push(createCapture(pipe.read, context.gate, (chunk) => context.output(task, fd, chunk)));
    return pipe.write;
  };
  const out = openEnd(1, request.stdout);
  opened.push(out);
  const shared = request.stdout !== null && request.stdout === request.stderr;
  const err = shared ? out : openEnd(2, request.stderr);
  if (!shared) opened.push(err);

  const prefix = request.cpus === null ? [] : pinPrefix(request.cpus);
  if (prefix.length > 0) {
    step("cwd", () => accessSync(request.cwd, constants.X_OK));
    const found = findIn(context.env, request);
    if ("code" in found) throw new StartError("exec", found.code);
  }
  const [file, ...args] = [...prefix, ...request.argv];
  try {
    return spawn(file!, args, {
      cwd: request.cwd,
      env: context.env,
      detached: true, // setsid
      stdio: ["ignore", out, err],
    });
  } catch (error) {
    throw spawnFailure(request, context.env, error);
  }
};

/** Starts the main process. Whatever goes wrong is reported through `ended`, like an end. */
export const startTask = (request: StartRequest, context: StartContext): NodeTask => {
  const startedAt = epochMs();
  const task: NodeTask = {
    request,
    captures: [],
    startedAt,
    pid: 0,
    endedAt: startedAt,
    left: false,
    code: null,
    signal: null,
    failure: null,
    ending: false,
    deadline: 0,
    timer: undefined,
    tmpdir: null,
    cgroup: null,
    cgroupPeak: 0,
    oomKills: 0,
    rounds: 0,
    killed: new Set(),
  };
  const finish = (): void => {
    if (task.left) return;
    task.left = true;
    task.endedAt = epochMs();
    context.ended(task);
  };
  const fail = (error: unknown): void => {
    if (!(error instanceof StartError)) throw error;
    task.failure = error;
    finish();
  };

  const opened: number[] = [];
  try {
    const child = begin(task, context, opened);
    task.pid = child.pid ?? 0;
    child.on("error", (error) => {
      if (task.pid === 0) fail(spawnFailure(request, context.env, error)); // otherwise: a signal that could not be sent
    });
    child.on("exit", (code, signal) => {
      if (task.pid === 0) return;
      task.code = code;
      task.signal = signal === null ? null : osConstants.signals[signal];
      finish();
    });
    if (task.pid > 0 && request.cgroup !== null) {
      task.cgroup = makeCgroup(request.cgroup, request.token);
      if (task.cgroup !== null) joinCgroup(task.cgroup, task.pid);
    }
  } catch (error) {
    process.nextTick(fail, error);
  } finally {
    for (const fd of opened) closeSync(fd);
  }
  return task;
};
