import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { readLines } from "../client/lines.ts";
import { errorFromJSON, SlipwayError } from "../errors.ts";

export interface ServeOptions {
  readonly home: string;
  readonly root: string;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** A clusters.yaml besides the home's own. */
  readonly clusters?: string | undefined;
}

export interface Started {
  readonly pid: number;
  readonly url: string;
}

/** Replaying a long journal takes its time, but not this long. */
const START_TIMEOUT = 180_000;
const LOG_SHOWN = 4000;

export const serverBundle = (root: string): string => {
  const bundle = path.join(root, "dist", "server.js");
  if (!existsSync(bundle))
    throw new SlipwayError("internal", { detail: `${bundle} is missing; run \`npm ci\` in ${root} first` });
  return bundle;
};

export const serveArguments = ({ home, root, host, port, clusters }: ServeOptions): string[] => [
  serverBundle(root),
  "serve",
  "--home",
  home,
  ...(host === undefined ? [] : ["--host", host]),
  ...(port === undefined ? [] : ["--port", String(port)]),
  ...(clusters === undefined ? [] : ["--clusters", clusters]),
];

const openLog = async (home: string) => {
  try {
    await mkdir(path.join(home, "logs"), { recursive: true, mode: 0o700 });
    return await open(path.join(home, "logs", "server.log"), "a+", 0o600);
  } catch (error) {
    throw new SlipwayError("home-unusable", { home, detail: (error as Error).message }, error);
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
  const log = await openLog(options.home);
  const logPath = path.join(options.home, "logs", "server.log");
  const failed = (detail: string, cause?: unknown): SlipwayError =>
    new SlipwayError("server-start", { detail, log: logPath }, cause);
  try {
    const { size } = await log.stat();
    const child = spawn(process.execPath, args, {
      detached: true,
      cwd: options.home,
      stdio: ["ignore", log.fd, log.fd, "pipe"],
    });
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
    if (error !== undefined) throw error;
    return { pid: child.pid ?? 0, url: String(said["url"] ?? "") };
  } finally {
    await log.close();
  }
};
