import { spawn } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Real pipes for the Node spawner. Node's own `pipe` stdio is a socket, on which a task's `echo x > /dev/stderr` fails;
 * and Node cannot call pipe(2). So mkfifo makes named pipes, many at a time; opened at both ends and unlinked, they are
 * pipes like any other, and never used twice.
 */
export interface FifoPool {
  /** Ready pipes. */
  readonly size: number;
  /** Both ends of a fresh pipe: `read` does not block, `write` does. Throws what open throws. */
  take(): { readonly read: number; readonly write: number };
  /** Settles once there are pipes again; rejects when mkfifo cannot be run. */
  refill(): Promise<void>;
  close(): void;
}

const BATCH = 128;

/** Names the spawner's directory of pipes, so that the client can remove it if the spawner is killed. */
export const PIPES_VARIABLE = "SLIPWAY_SPAWNER_PIPES";

const places = (name: string): string[] => ["/dev/shm", tmpdir()].map((base) => join(base, `slipway-pipes-${name}`));

const makeDirectory = (name: string): string => {
  const [first, second] = places(name) as [string, string];
  try {
    mkdirSync(first, { mode: 0o700 });
    return first;
  } catch {
    mkdirSync(second, { mode: 0o700 });
    return second;
  }
};

export const removePipes = (name: string): void => {
  for (const path of places(name)) rmSync(path, { recursive: true, force: true });
};

export const createFifoPool = (name: string): FifoPool => {
  const directory = makeDirectory(name);
  const ready: string[] = [];
  let made = 0;
  let refilling: Promise<void> | undefined;

  const refill = (): Promise<void> =>
    (refilling ??= new Promise<void>((resolve, reject) => {
      const names = Array.from({ length: BATCH }, () => `p${made++}`);
      const child = spawn("mkfifo", ["-m", "600", ...names], { cwd: directory, stdio: "ignore" });
      child.on("error", reject);
      child.on("exit", (code) => {
        if (code !== 0) return reject(new Error(`mkfifo ended with ${code}`));
        for (const name of names) ready.push(join(directory, name));
        resolve();
      });
    }).finally(() => {
      refilling = undefined;
    }));

  return {
    get size() {
      return ready.length;
    },
    take: () => {
      const path = ready.pop()!;
      const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      try {
        return { read, write: openSync(path, constants.O_WRONLY) };
      } catch (error) {
        closeSync(read);
        throw error;
      } finally {
        unlinkSync(path);
      }
    },
    refill,
    close: () => rmSync(directory, { recursive: true, force: true }),
  };
};
