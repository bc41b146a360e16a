import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readExit } from "./events.ts";
import { PIPES_VARIABLE, removePipes } from "./fifo-pool.ts";
import { createFrameReader } from "./frames.ts";
import { Event, type Exit, type StartRequest, VERSION } from "./protocol.ts";
import { createRequestSender } from "./request-sender.ts";
import { type LostTask, salvage } from "./salvage.ts";

export type { Exit, StartRequest } from "./protocol.ts";

/** Called in this order for each task: started, output…, exit. A chunk may be kept. */
export interface SpawnerListener {
  started(id: number, pid: number): void;
  output(id: number, fd: 1 | 2, chunk: Buffer): void;
  exit(exit: Exit): void;
  /** The spawner process is gone; tasks that were alive have been killed and get no exit. Called once, last. */
  closed(reason: string): void;
}

export interface SpawnerOptions {
  readonly nativePath?: string;
  /** argv that runs the Node implementation. */
  readonly nodeEntry: readonly string[];
  /** auto (the default): native if it exists, runs here and speaks this version; otherwise node. */
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
  /** Leads to exactly one exit, unless the spawner closes first. Throws only if the environment was never defined. */
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

/** The process of a spawner, and why it ends. */
const startProcess = (kind: Spawner["kind"], [file = "", ...args]: readonly string[]) => {
  const pipes = randomUUID();
  const env = { ...process.env, [PIPES_VARIABLE]: pipes };
  // a session of its own: Ctrl-C in the agent's terminal is for the agent to handle
  const child: ChildProcess = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"], detached: true, env });
  const [stdin, stdout, stderr] = [child.stdin!, child.stdout!, child.stderr!];
  let problem = "";
  let said = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-KEPT_STDERR);
  });
  stdin.on("error", (error) => {
    said ||= error.message; // it is about to be gone: `close` says why
  });
  child.on("error", (error) => {
    problem ||= error.message;
  });
  return {
    pid: child.pid ?? 0,
    pipes: kind === "node" ? pipes : "",
    stdin,
    stdout,
    /** Gives this reason for its end, unless it already has one. */
    blame: (reason: string): void => {
      problem ||= reason;
    },
    kill: (reason: string): void => {
      problem ||= reason;
      child.kill("SIGKILL");
    },
    onGone: (then: (reason: string) => void): void => {
      child.on("close", (code, signal) => {
        if (kind === "node") removePipes(pipes);
        const how = signal === null ? `exit status ${code}` : `killed by ${signal}`;
        then(problem || [`the ${kind} spawner ended (${how})`, said.trim()].filter(Boolean).join(": "));
      });
    },
  };
};

type SpawnerProcess = ReturnType<typeof startProcess>;

/**
 * Passes events to the listener as they come. `greeted`: called once, with the first, which must be a hello of our
 * version.
 */
const readEvents = (
  child: SpawnerProcess,
  live: Map<number, LostTask>,
  listener: SpawnerListener,
  greeted: () => void,
): void => {
  let isGreeted = false;
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
    } else if (type === Event.HELLO && !isGreeted) {
      const version = buffer.readUInt32LE(at);
      if (version !== VERSION) return child.kill(`it speaks version ${version} of the protocol, not ${VERSION}`);
      isGreeted = true;
      greeted();
    } else child.kill(`it sent something that is not an event (${type})`);
  });

  child.stdout.on("data", (chunk: Buffer) => {
    try {
      read(chunk);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      child.kill(error.message);
    }
  });
};

const connect = (kind: "native" | "node", argv: readonly string[], listener: SpawnerListener): Promise<Spawner> =>
  new Promise((resolve, reject) => {
    const child = startProcess(kind, argv);
    const { stdin, stdout } = child;
    const { live, tmpdirs, stop, ...requests } = createRequestSender(stdin, (exit) => listener.exit(exit));
    const timer = setTimeout(() => child.kill("it did not answer in time"), HANDSHAKE_MS);
    let greeted = false;
    let settleClosed: (() => void) | undefined;
    const closed = new Promise<void>((settle) => {
      settleClosed = settle;
    });
    const spawner: Spawner = {
      kind,
      pid: child.pid,
      pipes: child.pipes,
      ...requests,
      pause: () => void stdout.pause(),
      resume: () => void stdout.resume(),
      close: () => {
        child.blame("closed");
        requests.flush();
        stdin.end();
        stdout.resume();
        return closed;
      },
    };

    readEvents(child, live, listener, () => {
      greeted = true;
      clearTimeout(timer);
      resolve(spawner);
    });
    child.onGone((reason) => {
      stop();
      clearTimeout(timer);
      if (!greeted) return reject(new Error(reason));
      void salvage(child.pid, live.values(), tmpdirs).then(() => {
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
      // built for another machine or another version: the Node spawner does the same
      return connect("node", nodeEntry, listener);
    }
  }
  return connect("node", nodeEntry, listener);
};
