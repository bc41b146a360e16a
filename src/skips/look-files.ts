import { createHash } from "node:crypto";
import { open, stat } from "node:fs/promises";
import { statSync } from "node:fs";
import type { SkipMode, TaskFiles } from "../core/task-files.ts";
import type { Reason } from "./reasons.ts";
import { type Seen, weigh } from "./weigh.ts";

/** Looks at the files of tasks. It may hang with its file system: a server has it done by another process (looker.ts). */

export interface LookTask extends TaskFiles {
  readonly mode: SkipMode;
}

/** Why a task runs; null: its files are as they should be. With `content`, what its inputs hold; 0: nobody could read it. */
export interface Look {
  readonly reason: Reason | null;
  readonly contents?: number;
}

/** Inputs of one task that are read, in bytes all together. */
const MOST_READ = 4 * 2 ** 30;
/** A file system that takes longer than this for a look is asked several things at once. */
const SLOW_MS = 0.3;
const AT_ONCE = 32;

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "unknown";

const isAbsent = (error: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(codeOf(error));

const seeNow = (path: string): Seen => {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })?.mtimeNs ?? null;
  } catch (error) {
    return isAbsent(error) ? null : codeOf(error);
  }
};

const see = async (path: string): Promise<Seen> => {
  try {
    return (await stat(path, { bigint: true })).mtimeNs;
  } catch (error) {
    return isAbsent(error) ? null : codeOf(error);
  }
};

/** 53 bits of a SHA-256 over names and contents; never 0. */
const read = async (inputs: readonly string[]): Promise<number | Reason> => {
  const hash = createHash("sha256");
  let left = MOST_READ;
  for (const about of inputs) {
    try {
      const file = await open(about, "r");
      try {
        const info = await file.stat();
        if (!info.isFile()) return { kind: "unreadable", about, than: "it is not a file" };
        hash.update(`${about.length} ${about} ${info.size} `);
        if (info.size > left) return { kind: "large", about, than: "more than 4 GiB" };
        left -= info.size;
        for await (const chunk of file.createReadStream({ autoClose: false, highWaterMark: 2 ** 20 }))
          hash.update(chunk as Buffer);
      } finally {
        await file.close();
      }
    } catch (error) {
      return isAbsent(error) ? { kind: "no-input", about } : { kind: "unreadable", about, than: codeOf(error) };
    }
  }
  const digest = hash.digest();
  return digest.readUIntBE(0, 6) * 32 + (digest[6]! & 31) || 1;
};

const contentsOf = async (task: LookTask, reason: Reason | null): Promise<Look> => {
  const contents = await read(task.inputs);
  return typeof contents === "number" ? { reason, contents } : { reason: reason ?? contents, contents: 0 };
};

/** How long one look took, the last time. */
let pace = 0;

/** What was seen of each path: one after the other where that is quick. */
const seeAll = async (paths: readonly string[]): Promise<Map<string, Seen>> => {
  const since = performance.now();
  const seen = new Map<string, Seen>();
  if (pace < SLOW_MS) for (const path of paths) seen.set(path, seeNow(path));
  else
    for (let at = 0; at < paths.length; at += AT_ONCE)
      await Promise.all(paths.slice(at, at + AT_ONCE).map(async (path) => seen.set(path, await see(path))));
  const took = (performance.now() - since) / Math.max(1, paths.length);
  pace = pace < SLOW_MS ? took : Math.max(took, SLOW_MS);
  return seen;
};

export const lookFiles = async (tasks: readonly LookTask[]): Promise<Look[]> => {
  const seen = await seeAll([...new Set(tasks.flatMap(({ outputs, inputs }) => [...outputs, ...inputs]))]);
  const looks: Look[] = [];
  for (const task of tasks) {
    const named = (paths: readonly string[]) => paths.map((path) => [path, seen.get(path)!] as const);
    const reason = weigh(task.mode, { outputs: named(task.outputs), inputs: named(task.inputs) }) ?? null;
    looks.push(task.mode === "content" ? await contentsOf(task, reason) : { reason });
  }
  return looks;
};
