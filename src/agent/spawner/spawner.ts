import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { failedStart, readExit } from "./events.ts";
import { PIPES_VARIABLE, removePipes } from "./fifo-pool.ts";
import { createFrameReader, createFrameWriter } from "./frames.ts";
import { Event, type Exit, NONE, Request, type StartRequest, VERSION } from "./protocol.ts";
import { toGrace, writeEnv, writeNumbers, writeStart } from "./requests.ts";
import { type LostTask, salvage } from "./salvage.ts";

export type { Exit, StartRequest } from "./protocol.ts";

/** Told in this order for each task: started, output…, exit. A chunk may be kept. */
export interface SpawnerListener {
  started(id: number, pid: number): void;
  output(id: number, fd: 1 | 2, chunk: Buffer): void;
  exit(exit: Exit): void;
  /** The spawner process is gone; tasks that were live have been killed and get no exit. Called once, last. */
  closed(reason: string): void;
}

export interface SpawnerOptions {
  readonly nativePath?: string;
  /** argv that runs the Node implementation. */
  readonly nodeEntry: readonly string[];
  /** auto (the default): native if it is there, runs here and speaks this version; else node. */
  readonly kind?: "native" | "node" | "auto";
}

export interface Spawner {
  readonly kind: "native" | "node";
  readonly pid: number;
  /** Names its directory of pipes; empty where it has none. */
  readonly pipes: string;
  /** Defines or replaces a base environment of `K=V` entries; the last of equal names wins. */
  defineEnv(id: number, entries: readonly string[]): void;
  dropEnv(id: number): void;
  /** Answered by exactly one exit, unless the spawner closes first. Throws only if the environment was never defined. */
  start(request: StartRequest): void;
  /** TERM to all of the task, KILL after the grace. Unknown ids are ignored: the task may just have ended. */
  end(id: number, graceMs?: number): void;
  /** A signal to the task's process group. */
  signal(id: number, signo: number): void;
  /** Requests are sent together at the end of the current turn; this sends them now. */
  flush(): void;
  /** Stops reading events; the spawner soon stops reading tasks, which then wait in their writes. */
  pause(): void;
  resume(): void;
  /** Ends all tasks with their grace; settles when the process has exited. */
  close(): Promise<void>;
}

const HANDSHAKE_MS = 10_000;
const KEPT_STDERR = 2048;

/** The exit of a task that is not even sent; told after `start` has returned, like any other. */
const refuse = (listener: SpawnerListener, id: number, stage: "exec" | "dropped", errno: number): void =>
  queueMicrotask(() => listener.exit(failedStart(id, stage, errno)));

const connect = (kind: "native" | "node", argv: readonly string[], listener: SpawnerListener): Promise<Spawner> =>
  new Promise((resolve, reject) => {
    const [file = "", ...args] = argv;
    // a session of its own: Ctrl-C in the agent's terminal is the agent's to handle
    const pipes = randomUUID();
    const env = { ...process.env, [PIPES_VARIABLE]: pipes };
    const child: ChildProcess = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"], detached: true, env });
    const [stdin, stdout, stderr] = [child.stdin!, child.stdout!, child.stderr!];
    const writer = createFrameWriter();
    const environments = new Map<number, "ok" | "too-large" | "nul">();
    const live = new Map<number, LostTask>();
    let greeted = false;
    let scheduled = false;
    let gone = false;
    let problem = "";
    let said = "";
    let settleClosed: (() => void) | undefined;
    const closed = new Promise<void>((settle) => {
      settleClosed = settle;
    });

    const timer = setTimeout(() => fail("it did not answer in time"), HANDSHAKE_MS);
    const fail = (reason: string): void => {
      problem ||= reason;
      child.kill("SIGKILL");
    };

    const flush = (): void => {
      scheduled = false;
      if (writer.size === 0) return;
      const bytes = writer.take();
      if (!gone && stdin.writable) stdin.write(bytes);
    };
    const schedule = (): void => {
      if (scheduled) return;
      scheduled = true;
      queueMicrotask(flush);
    };
    const spawner: Spawner = {
      kind,
      pid: child.pid ?? 0,
      pipes: kind === "node" ? pipes : "",
      defineEnv: (id, entries) => {
        environments.set(id, writeEnv(writer, id, entries));
        schedule();
      },
      dropEnv: (id) => {
        if (environments.get(id) === "ok") writeNumbers(writer, Request.DROP_ENV, id);
        environments.delete(id);
        schedule();
      },
      start: (request) => {
        const { id } = request;
        const env = environments.get(request.env);
        if (env === undefined) throw new Error(`environment ${request.env} was not defined`);
        const sent = env !== "ok" ? env : request.argv.length === 0 ? "nul" : writeStart(writer, request);
        const { E2BIG, EINVAL, EPIPE } = constants.errno;
        if (sent !== "ok") return refuse(listener, id, "exec", sent === "nul" ? EINVAL : E2BIG);
        // no fault of the task's: it never began, and `closed` is about to tell why
        if (gone || !stdin.writable) return refuse(listener, id, "dropped", EPIPE);
        live.set(id, { pid: 0, token: request.token, tmpdir: request.tmpdir });
        schedule();
      },
      end: (id, graceMs) => {
        if (!live.has(id)) return;
        writeNumbers(writer, Request.END, id, graceMs === undefined ? NONE : toGrace(graceMs));
        schedule();
      },
      signal: (id, signo) => {
        if (!live.has(id)) return;
        writeNumbers(writer, Request.SIGNAL, id, signo);
        schedule();
      },
      flush,
      pause: () => void stdout.pause(),
      resume: () => void stdout.resume(),
      close: () => {
        problem ||= "closed";
        flush();
        stdin.end();
        stdout.resume();
        return closed;
      },
    };

    const read = createFrameReader((type, buffer, at, end) => {
      if (type === Event.EXIT) {
        const exit = readExit(buffer, at, end);
        live.delete(exit.id);
        listener.exit(exit);
      } else if (type === Event.OUTPUT) {
        listener.output(buffer.readUInt32LE(at), buffer[at + 4] === 1 ? 1 : 2, buffer.subarray(at + 5, end));
      } else if (type === Event.STARTED) {
        const id = buffer.readUInt32LE(at);
        const pid = buffer.readUInt32LE(at + 4);
        const task = live.get(id);
        if (task !== undefined) task.pid = pid;
        listener.started(id, pid);
      } else if (type === Event.HELLO && !greeted) {
        const version = buffer.readUInt32LE(at);
        if (version !== VERSION) return fail(`it speaks version ${version} of the protocol, not ${VERSION}`);
        greeted = true;
        clearTimeout(timer);
        resolve(spawner);
      } else fail(`it sent something that is not an event (${type})`);
    });

    stdout.on("data", (chunk: Buffer) => {
      try {
        read(chunk);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        fail(error.message);
      }
    });
    stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-KEPT_STDERR);
    });
    stdin.on("error", (error) => {
      said ||= error.message; // it is about to be gone: `close` tells
    });
    child.on("error", (error) => {
      problem ||= error.message;
    });
    child.on("close", (code, signal) => {
      gone = true;
      clearTimeout(timer);
      if (kind === "node") removePipes(pipes);
      const how = signal === null ? `exit status ${code}` : `killed by ${signal}`;
      const reason = problem || [`the ${kind} spawner ended (${how})`, said.trim()].filter(Boolean).join(": ");
      if (!greeted) return reject(new Error(reason));
      void salvage(live.values()).then(() => {
        live.clear();
        listener.closed(reason);
        settleClosed?.();
      });
    });
  });

/** Starts a spawner process; settles after its first frame, which carries the version of the protocol. */
export const startSpawner = async (options: SpawnerOptions, listener: SpawnerListener): Promise<Spawner> => {
  const { nativePath, nodeEntry, kind = "auto" } = options;
  if (kind === "node") return connect("node", nodeEntry, listener);
  if (kind === "native") {
    if (nativePath === undefined) throw new Error("there is no native spawner");
    return connect("native", [nativePath], listener);
  }
  if (nativePath !== undefined && existsSync(nativePath)) {
    try {
      return await connect("native", [nativePath], listener);
    } catch {
      // built for another machine, or for another version: Node's does the same
      return connect("node", nodeEntry, listener);
    }
  }
  return connect("node", nodeEntry, listener);
};
