import { randomUUID } from "node:crypto";
import { closeSync, readdirSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { isOver } from "../../process-stat.ts";
import { errnoName, writeExit } from "./events.ts";
import { createFifoPool, PIPES_VARIABLE } from "./fifo-pool.ts";
import { createFrameReader } from "./frames.ts";
import { createSweeper } from "./node-sweep.ts";
import { type NodeTask, startTask } from "./node-task.ts";
import { createOutbox } from "./outbox.ts";
import { Event, NONE, Request, type StartRequest, VERSION } from "./protocol.ts";
import { removeTree } from "./remove-tree.ts";
import { createBodyReader, readStart } from "./requests.ts";
import { sendSignal } from "./strays.ts";
import { createSuccessors } from "./successors.ts";
import { removeCgroup } from "./task-cgroup.ts";

/** A task that ends sooner is reported in one piece, its pipes never watched. */
const YOUNG_MS = 5;
/** While stopping: how long the agent may leave our events unread. */
const STALL_MS = 10_000;
/** Each captured task takes two pipes; below this many, more are made. */
const LOW_POOL = 48;

type Env = Readonly<Record<string, string>>;

const put = (env: Record<string, string>, entry: string): void => {
  const equals = entry.indexOf("=");
  if (equals < 0) env[entry] = "";
  else env[entry.slice(0, equals)] = entry.slice(equals + 1);
};

const emptyEnv = (): Record<string, string> => Object.create(null) as Record<string, string>;

const O_CLOEXEC = 0o2000000;

/** Closes what whoever started us left open: Node marks its own descriptors close-on-exec, but not all inherited ones. */
const closeInherited = (): void => {
  for (const name of readdirSync("/proc/self/fd")) {
    if (Number(name) <= 2) continue;
    try {
      const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "latin1"))?.[1];
      if (flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0) closeSync(Number(name));
    } catch {
      continue; // the descriptor that listed the others
    }
  }
};

/**
 * The spawner in Node: the same protocol and promises as native/spawner.h, for machines without a compiler. Runs as
 * a process of its own until stdin ends or a signal asks it to stop, then exits.
 */
export const runNodeSpawner = (stdin: NodeJS.ReadStream, stdout: NodeJS.WriteStream): void => {
  Error.stackTraceLimit = 0; // errors of system calls are everyday answers here
  closeInherited();
  delete process.env["NODE_V8_COVERAGE"]; // Node would hand it on to every task

  const environments = new Map<number, Env>();
  const tasks = new Map<number, NodeTask>();
  const mains = new Set<number>();
  const young = new Set<NodeTask>();
  const successors = createSuccessors();
  /** Ended, swept and cleaned up, but the agent must read before the rest of their output fits. */
  const draining = new Set<NodeTask>();
  /** Requests that came while no pipes were ready, in order. */
  let deferred: (() => void)[] | undefined;
  let youngTimer: NodeJS.Timeout | undefined;
  let stopping = false;
  let exitStatus = 0;

  const pool = createFifoPool(process.env[PIPES_VARIABLE] ?? randomUUID());
  const outbox = createOutbox(stdout, {
    opened: () => {
      for (const task of tasks.values()) for (const capture of task.captures) capture.resume();
      for (const task of draining) finish(task);
    },
    broken: () => {
      outbox.abandon();
      stop();
    },
    emptied: () => leaveIfDone(),
  });

  const leaveIfDone = (): void => {
    if (!stopping || tasks.size > 0 || outbox.queued() > 0) return;
    pool.close();
    process.exit(exitStatus);
  };

  const watchYoung = (): void => {
    youngTimer = undefined;
    for (const task of young) for (const capture of task.captures) capture.watch();
    young.clear();
  };

  const finish = (task: NodeTask): void => {
    draining.add(task);
    for (const capture of task.captures) if (!capture.drain()) return;
    draining.delete(task);
    clearTimeout(task.timer);
    const { failure } = task;
    writeExit(outbox.writer, {
      id: task.request.id,
      code: failure?.stage === "exec" ? (errnoName(failure.errno) === "ENOENT" ? 127 : 126) : task.code,
      signal: task.signal,
      startedAt: task.startedAt,
      endedAt: task.endedAt,
      error: failure === null ? null : { ...failure, code: errnoName(failure.errno) },
      maxRssBytes: 0,
      userMs: 0,
      systemMs: 0,
      ended: task.ending,
      strays: task.killed.size,
    });
    tasks.delete(task.request.id);
    outbox.schedule();
    if (!stopping) for (const next of successors.take(task.request.id)) perform(() => start(next));
    if (stopping) setImmediate(leaveIfDone);
  };

  const cleanUp = async (task: NodeTask): Promise<void> => {
    if (task.cgroup !== null) await removeCgroup(task.cgroup);
    if (task.tmpdir !== null) await removeTree(task.tmpdir);
    finish(task);
  };

  const sweeper = createSweeper(
    (pid) => mains.has(pid),
    (task) => void cleanUp(task),
  );

  const ended = (task: NodeTask): void => {
    young.delete(task);
    mains.delete(task.pid);
    if (task.pid === 0) void cleanUp(task);
    else sweeper.add(task);
  };

  const end = (task: NodeTask, graceMs: number): void => {
    const deadline = performance.now() + graceMs;
    const first = !task.ending && !task.left;
    if (!first && (!task.ending || deadline >= task.deadline)) return;
    // over by itself, though we have not heard of it yet: not ended by us
    if (first && task.pid > 0 && isOver(task.pid)) return;
    task.ending = true;
    task.deadline = deadline;
    if (first && task.pid > 0) sweeper.term(task);
    clearTimeout(task.timer);
    task.timer = setTimeout(() => {
      if (!task.left && task.pid > 0) sendSignal(-task.pid, "SIGKILL");
      sweeper.hurry();
    }, graceMs);
  };

  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    deferred = undefined;
    stdin.destroy();
    for (const task of tasks.values()) end(task, task.request.graceMs);
    let queued = outbox.queued();
    setInterval(() => {
      const now = outbox.queued();
      if (now > 0 && now >= queued) outbox.abandon();
      queued = now;
      leaveIfDone();
    }, STALL_MS);
    leaveIfDone();
  };

  const start = (request: StartRequest): void => {
    const base = environments.get(request.env);
    if (base === undefined || tasks.has(request.id)) throw new RangeError("unknown environment or task id in use");
    const env = Object.assign(emptyEnv(), base);
    for (const entry of request.extraEnv) put(env, entry);
    const output = (task: NodeTask, fd: 1 | 2, chunk: Buffer): void => {
      outbox.writer.begin(Event.OUTPUT);
      outbox.writer.u32(task.request.id);
      outbox.writer.u8(fd);
      outbox.writer.bytes(chunk);
      outbox.writer.end();
      outbox.schedule();
    };
    const task = startTask(request, { pool, gate: outbox.gate, env, output, ended });
    tasks.set(request.id, task);
    if (task.pid === 0) return;
    mains.add(task.pid);
    outbox.writer.begin(Event.STARTED);
    outbox.writer.u32(request.id);
    outbox.writer.u32(task.pid);
    outbox.writer.end();
    outbox.schedule();
    if (task.captures.length === 0) return;
    young.add(task);
    youngTimer ??= setTimeout(watchYoung, YOUNG_MS);
  };

  const refill = (): void => {
    pool.refill().then(resume, (error: unknown) => {
      process.stderr.write(`slipway spawner: pipes cannot be made: ${String(error)}\n`);
      exitStatus = 3;
      stop();
    });
  };

  const resume = (): void => {
    const waiting = deferred ?? [];
    deferred = undefined;
    for (const action of waiting) perform(action);
  };

  /** Requests keep their order: once one waits for pipes, all that follow wait behind it. */
  const perform = (action: () => void): void => {
    if (stopping) return;
    if (deferred === undefined && pool.size < 2) deferred = [];
    if (pool.size < LOW_POOL) refill();
    if (deferred !== undefined) deferred.push(action);
    else guarded(action);
  };

  const guarded = (action: () => void): void => {
    try {
      action();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      process.stderr.write(`slipway spawner: protocol error: ${error.message}\n`);
      exitStatus = 2;
      stop();
    }
  };

  const read = createFrameReader((type, buffer, at, to) => {
    if (stopping) return;
    if (type === Request.START) {
      const request = readStart(buffer, at, to);
      return perform(() => {
        const { after } = request;
        if (after !== null && (tasks.has(after) || successors.has(after))) successors.add(request, after);
        else start(request);
      });
    }
    const body = createBodyReader(buffer, at, to);
    const id = body.u32();
    if (type === Request.ENV) {
      const env = emptyEnv();
      for (const entry of body.texts()) put(env, entry);
      body.done();
      perform(() => environments.set(id, env));
    } else if (type === Request.DROP_ENV) {
      perform(() => environments.delete(id));
    } else if (type === Request.END || type === Request.SIGNAL) {
      const value = body.u32();
      perform(() => {
        if (type === Request.END && successors.drop(id)) {
          const now = Date.now();
          const error = { stage: "dropped" as const, errno: constants.errno.ECANCELED, code: "ECANCELED" };
          const nothing = { code: null, signal: null, maxRssBytes: 0, userMs: 0, systemMs: 0, strays: 0, ended: true };
          writeExit(outbox.writer, { id, ...nothing, startedAt: now, endedAt: now, error });
          return outbox.schedule();
        }
        const task = tasks.get(id); // may have ended in the meantime
        if (task === undefined) return;
        if (type === Request.END) end(task, value === NONE ? task.request.graceMs : value);
        else if (!task.left && task.pid > 0 && value > 0 && value <= 64) sendSignal(-task.pid, value);
      });
    } else throw new RangeError(`unknown request ${type}`);
  });

  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (stopping) for (const task of tasks.values()) end(task, 0); // asked twice: at once
      stop();
    });
  }
  process.on("exit", () => pool.close());
  pool.refill().then(
    () => {
      outbox.writer.begin(Event.HELLO);
      outbox.writer.u32(VERSION);
      outbox.writer.u32(process.pid);
      outbox.writer.end();
      outbox.schedule();
      stdin.on("data", (chunk: Buffer) => guarded(() => read(chunk)));
      stdin.on("end", stop);
      stdin.on("error", stop);
    },
    (error: unknown) => {
      process.stderr.write(`slipway spawner: pipes cannot be made: ${String(error)}\n`);
      process.exit(3);
    },
  );
};
