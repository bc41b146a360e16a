import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { readLines } from "../client/lines.ts";
import type { ProjectLocation } from "../config/load-project.ts";
import { errorFromJSON, SlipwayError } from "../errors.ts";
import { setAside } from "../extra-authorities.ts";
import { makeDirectories } from "../protocol/make-directories.ts";

export interface ServeOptions {
  readonly home: string;
  readonly root: string;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** A clusters.yaml besides the home's own: named, or found beside a run. */
  readonly clusters?: string | undefined;
  readonly foundClusters?: string | undefined;
  /** The project whose overrides apply. */
  readonly project?: ProjectLocation | undefined;
  /** It ends when this process does, however that ends. */
  readonly bound?: boolean | undefined;
}

export interface Started {
  readonly pid: number;
  readonly url: string;
  /** Where its port is open, and why there. */
  readonly listens: { readonly host: string; readonly reason: string };
  /** Resolves when its process has ended, while this one lives. */
  readonly ended: Promise<void>;
}

/** Replaying a long journal takes its time, but not this long. */
const START_TIMEOUT = 180_000;
const LOG_SHOWN = 4000;

/**
 * MB that old objects may fill before V8 looks for garbage the first time (see src/server/quick.ts), and that young ones may:
 * a pause for these is half of what it is with V8's 16, and comes twice as often: one in fifty small runs waits a little for it.
 */
const HEAP = ["--initial-old-space-size=64", "--max-semi-space-size=8"];

export const serverBundle = (root: string): string => {
  const bundle = path.join(root, "dist", "server.js");
  if (!existsSync(bundle))
    throw new SlipwayError("internal", { detail: `${bundle} is missing; run \`npm ci\` in ${root} first` });
  return bundle;
};

export const serveArguments = ({
  home,
  root,
  host,
  port,
  clusters,
  foundClusters,
  project,
  bound,
}: ServeOptions): string[] => [
  ...HEAP,
  serverBundle(root),
  "serve",
  "--home",
  home,
  ...(host === undefined ? [] : ["--host", host]),
  ...(port === undefined ? [] : ["--port", String(port)]),
  ...(clusters === undefined ? [] : ["--clusters", clusters]),
  ...(foundClusters === undefined ? [] : ["--found-clusters", foundClusters]),
  ...(project?.files ?? []).flatMap((file) => ["--project", file]),
  ...(project?.stage === undefined ? [] : ["--stage", project.stage]),
  ...(bound === true ? ["--bound"] : []),
];

/** The system's word for why a home cannot be used, in ours. */
const problemOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "EROFS") return "it is on a read-only file system (EROFS)";
  if (code === "ENOENT") return "it cannot be created there (ENOENT)";
  if (code === "ENOTDIR" || code === "EEXIST") return `part of the path is not a directory (${code})`;
  return code === "EACCES" || code === "EPERM" ? `permission denied (${code})` : message;
};

/** The log, and what removes it when this turns out not to be a home. */
const openLog = async (home: string) => {
  const directory = path.join(home, "logs");
  try {
    const isNew = makeDirectories(directory, 0o700);
    const file = await open(path.join(directory, "server.log"), "a+", 0o600);
    return { file, undo: async () => (isNew ? rm(directory, { recursive: true, force: true }) : undefined) };
  } catch (error) {
    throw new SlipwayError("home-unusable", { home, detail: problemOf(error) }, error);
  }
};

/** The one line the server writes to fd 3; undefined when it died without a word. */
const readiness = async (pipe: Readable): Promise<Record<string, unknown> | undefined> => {
  for await (const line of readLines(pipe, 1024 * 1024)) return JSON.parse(line) as Record<string, unknown>;
  return undefined;
};

const spawned = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });

/**
 * Starts a server that outlives this process and resolves when it is ready. Its output goes to the home's log; when it
 * dies first, the error holds what it wrote there.
 */
export const startServer = async (options: ServeOptions): Promise<Started> => {
  const args = serveArguments(options);
  const { file: log, undo } = await openLog(options.home);
  const logPath = path.join(options.home, "logs", "server.log");
  const failed = (detail: string, cause?: unknown): SlipwayError =>
    new SlipwayError("server-start", { detail, log: logPath }, cause);
  try {
    const { size } = await log.stat();
    const child = spawn(process.execPath, args, {
      detached: true,
      cwd: options.home,
      env: setAside(),
      // nothing is ever written to it: its end is the message
      stdio: [options.bound === true ? "pipe" : "ignore", log.fd, log.fd, "pipe"],
    });
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    await spawned(child).catch((error: unknown) => {
      throw failed((error as Error).message, error);
    });
    const pipe = child.stdio[3] as Readable;
    const timer = setTimeout(
      () => pipe.destroy(new Error(`it was not ready within ${START_TIMEOUT / 1000} s`)),
      START_TIMEOUT,
    );
    const said = await readiness(pipe).catch((error: unknown) => {
      throw failed((error as Error).message, error);
    });
    clearTimeout(timer);
    pipe.destroy();
    child.unref();
    if (said === undefined) {
      const { buffer, bytesRead } = await log.read({ position: size, buffer: Buffer.alloc(1024 * 1024) });
      const text = buffer.toString("utf8", 0, bytesRead).trimEnd().slice(-LOG_SHOWN);
      throw failed(text === "" ? "it ended without a word" : `its last words:\n${text}`);
    }
    const error = errorFromJSON(said);
    if (error?.code === "home-unusable") await undo();
    if (error !== undefined) throw error;
    return {
      pid: child.pid ?? 0,
      url: String(said["url"] ?? ""),
      listens: said["listens"] as Started["listens"],
      ended,
    };
  } finally {
    await log.close();
  }
};
