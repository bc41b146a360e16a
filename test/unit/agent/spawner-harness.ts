import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { createFrameWriter, type FrameWriter } from "../../../src/agent/spawner/frames.ts";
import { tmpdirsOf } from "../../../src/agent/spawner/protocol.ts";
import { type Exit, type Spawner, type StartRequest, startSpawner } from "../../../src/agent/spawner/spawner.ts";
import { until } from "../../until.ts";

/** Both spawners, built once per test file, and what every test of them needs. */

const root = fileURLToPath(new URL("../../..", import.meta.url));

export const directory = mkdtempSync(join(tmpdir(), "slipway-spawner-test-"));
export const removeDirectory = (): void => {
  spawnSync("chmod", ["-R", "u+rwx", directory]);
  rmSync(directory, { recursive: true, force: true });
};

export const nativePath = join(directory, "slipway-spawner");
const built = spawnSync(process.execPath, [join(root, "scripts/build-native.mjs"), nativePath], { encoding: "utf8" });

const entry = join(directory, "node-spawner.mjs");
buildSync({
  stdin: {
    contents: 'import { runNodeSpawner } from "./node-spawner.ts"; runNodeSpawner(process.stdin, process.stdout);',
    resolveDir: join(root, "src/agent/spawner"),
  },
  bundle: true,
  platform: "node",
  format: "esm",
  outfile: entry,
  logLevel: "error",
});
export const nodeEntry = [process.execPath, entry];

export type Kind = "native" | "node";
export interface Implementation {
  readonly kind: Kind;
  /** Why its cases are skipped, "" when they run. */
  readonly absent: string;
}
export const implementations: readonly Implementation[] = [
  { kind: "native", absent: existsSync(nativePath) ? "" : built.stdout.trim() },
  { kind: "node", absent: "" },
];

export interface Ended extends Exit {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

export interface Running {
  readonly id: number;
  /** The directory in which its TMPDIR is; of no other task, unless the test says so. */
  readonly tmpdirs: string | null;
  /** The main process's pid, once its start was reported. */
  readonly pid: Promise<number>;
  readonly ended: Promise<Ended>;
  /** Settles when stdout has contained this text. */
  said(text: string): Promise<void>;
}

export interface Session {
  readonly spawner: Spawner;
  readonly scratch: string;
  start(argv: readonly string[], more?: Partial<StartRequest>): Running;
  run(argv: readonly string[], more?: Partial<StartRequest>): Promise<Ended>;
  sh(script: string, more?: Partial<StartRequest>): Promise<Ended>;
  /** The reason, once the spawner is gone. */
  readonly closed: Promise<string>;
}

let sessions = 0;
export const BASE_ENV = 1;
const PATH = process.env["PATH"] ?? "/usr/bin:/bin";

export interface SessionOptions {
  readonly nativePath?: string;
  /** Words before the spawner's own command, which execute it. */
  readonly prefix?: readonly string[];
}

export const openSession = async (kind: Kind | "auto", options: SessionOptions = {}): Promise<Session> => {
  const number = ++sessions;
  const scratch = join(directory, `s${number}`);
  mkdirSync(scratch);
  const { prefix = [] } = options;
  const wrapper = join(directory, `spawner${number}`);
  if (prefix.length > 0) writeFileSync(wrapper, `#!/bin/sh\nexec ${prefix.join(" ")} ${nativePath}\n`, { mode: 0o755 });
  let ids = 0;
  interface Entry {
    out: Buffer[];
    err: Buffer[];
    pid: (pid: number) => void;
    end: (ended: Ended) => void;
    heard: () => void;
  }
  const entries = new Map<number, Entry>();
  let tellClosed!: (reason: string) => void;
  const closed = new Promise<string>((resolve) => {
    tellClosed = resolve;
  });
  const spawner = await startSpawner(
    {
      nativePath: options.nativePath ?? (prefix.length > 0 ? wrapper : nativePath),
      nodeEntry: [...prefix, ...nodeEntry],
      kind,
    },
    {
      started: (id, pid) => entries.get(id)!.pid(pid),
      output: (id, fd, chunk) => {
        const entry = entries.get(id)!;
        (fd === 1 ? entry.out : entry.err).push(chunk);
        entry.heard();
      },
      exit: (exit) => {
        const entry = entries.get(exit.id)!;
        entries.delete(exit.id); // a second exit, or output after it, is an error
        entry.end({ ...exit, stdout: Buffer.concat(entry.out), stderr: Buffer.concat(entry.err) });
      },
      closed: tellClosed,
    },
  );
  spawner.defineEnv(BASE_ENV, [`PATH=${PATH}`]);

  const start: Session["start"] = (argv, more = {}) => {
    const id = more.id ?? ++ids;
    const token = more.token ?? `token-${process.pid}-${number}-${id}`;
    const tmpdir = more.tmpdir === undefined ? join(scratch, `tmp${id}`) : more.tmpdir;
    const entry: Entry = { out: [], err: [], pid: () => undefined, end: () => undefined, heard: () => undefined };
    const pid = new Promise<number>((resolve) => {
      entry.pid = resolve;
    });
    const ended = new Promise<Ended>((resolve) => {
      entry.end = resolve;
    });
    entries.set(id, entry);
    spawner.start({
      id,
      argv,
      env: BASE_ENV,
      cwd: scratch,
      stdout: null,
      stderr: null,
      cpus: null,
      graceMs: 5000,
      cgroup: null,
      after: null,
      append: false,
      ...more,
      tmpdir,
      token,
      extraEnv: [`SLIPWAY_TOKEN=${token}`, ...(more.extraEnv ?? [])],
    });
    const said = (text: string): Promise<void> =>
      new Promise((resolve) => {
        entry.heard = () => {
          if (Buffer.concat(entry.out).includes(text)) resolve();
        };
        entry.heard();
      });
    return { id, tmpdirs: tmpdir === null ? null : tmpdirsOf(tmpdir, spawner.pid), pid, ended, said };
  };
  const run: Session["run"] = (argv, more) => start(argv, more).ended;
  return { spawner, scratch, start, run, sh: (script, more) => run(["/bin/sh", "-c", script], more), closed };
};

/** Words before a command that take away root's power to enter any directory; none for other users, who lack it. */
export const WITHOUT_POWERS: readonly string[] =
  process.getuid?.() === 0 ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--"] : [];

/** Why those words do not work here; "" if they do. */
export const powersStay = ((): string => {
  const closed = join(directory, "closed");
  mkdirSync(closed, { mode: 0 });
  const [file = "", ...args] = [...WITHOUT_POWERS, "test", "-e", `${closed}/.`];
  const { error, status } = spawnSync(file, args);
  return error === undefined && status !== 0 ? "" : "setpriv cannot take root's powers away here";
})();

/** What tasks left in their TMPDIRs; those themselves may be used again. */
export const leftIn = (tmpdirs: string | null): string[] =>
  tmpdirs === null || !existsSync(tmpdirs)
    ? []
    : readdirSync(tmpdirs).flatMap((name) => readdirSync(join(tmpdirs, name)).map((entry) => join(name, entry)));

/** True while a process runs; a zombie does not. */
export const isAlive = (pid: number): boolean => {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
};

export const readPid = async (path: string): Promise<number> => {
  await until(`a pid in ${path}`, () => existsSync(path) && readFileSync(path, "utf8").endsWith("\n"));
  return Number(readFileSync(path, "utf8"));
};

/** A spawner without the client: frames go in unchanged; `ended` settles with its exit status and stderr. */
export const openRaw = (kind: Kind) => {
  const [file = "", ...args] = kind === "native" ? [nativePath] : nodeEntry;
  const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"] });
  const writer = createFrameWriter();
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => undefined);
  const hello = new Promise<void>((resolve) => {
    child.stdout.once("data", () => resolve());
  });
  const ended = new Promise<{ code: number | null; signal: string | null; stderr: string }>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, stderr }));
  });
  const send = (write: (writer: FrameWriter) => void): void => {
    write(writer);
    child.stdin.write(writer.take());
  };
  return { child, hello, ended, send };
};
