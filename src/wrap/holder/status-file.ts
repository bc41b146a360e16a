import { constants, lstat, open, realpath, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { formatSize } from "../../core/quantities.ts";
import { SlipwayError } from "../../errors.ts";
import { replaceFile } from "../../replace-file.ts";

/** How long whoever starts a wrapper may take to write the file. */
const PATIENCE_MS = 20_000;
const PAUSE_MS = 100;
const MOST_BYTES = 16 * 2 ** 20;

export type StatusBody = Readonly<Record<string, unknown>>;

/** What a wrapper writes; all other keys belong to others. */
const RESULTS = ["status", "reason", "problem", "address", "host", "port", "dashboard_port", "pid", "tls"] as const;

/** A status file as it is before its wrapper runs: nothing of an earlier one is in it. */
export const NO_RESULTS: StatusBody = Object.fromEntries(RESULTS.map((key) => [key, undefined]));
export const hasResults = (body: StatusBody): boolean => RESULTS.some((key) => key in body);

/** A file beside the status file that belongs to it. */
export const besides = (statusFile: string, ending: string): string => `${statusFile}.${ending}`;

/** One file has one name, whatever links lead to it; it need not be there yet. */
export const realStatusFile = async (path: string): Promise<string> => {
  const full = resolve(path);
  const directory = await realpath(dirname(full)).catch(() => dirname(full));
  return realpath(full).catch(() => join(directory, basename(full)));
};

const unreadable = (path: string, detail: string, remedy: string, cause?: unknown): SlipwayError =>
  new SlipwayError("wrap-failed", { detail: `${path} cannot be read: ${detail}`, remedy }, cause);

/** Parameters hold lines of shell for jobs: whoever writes them acts as you. */
const refuseForeign = (path: string, owner: number, what: string): void => {
  const uid = process.getuid?.() ?? owner;
  if (owner !== uid && owner !== 0)
    throw unreadable(path, `${what} belongs to another user (${owner})`, "Use a status file of your own.");
};

const readText = async (path: string): Promise<string | undefined> => {
  const name = "--status-file names a file of your own.";
  try {
    const link = await lstat(path);
    refuseForeign(path, link.uid, link.isSymbolicLink() ? "the link" : "it");
    // a pipe that nobody writes to would not open otherwise
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const facts = await file.stat();
      if (!facts.isFile()) throw unreadable(path, "it is not a file", name);
      refuseForeign(path, facts.uid, "it");
      if ((facts.mode & 0o002) !== 0)
        throw unreadable(path, "everybody can write to it", `\`chmod o-w ${path}\` changes that.`);
      if (facts.size > MOST_BYTES)
        throw unreadable(path, `it has ${formatSize(facts.size)}, more than ${formatSize(MOST_BYTES)}`, name);
      return await file.readFile("utf8");
    } finally {
      await file.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    if (error instanceof SlipwayError) throw error;
    throw unreadable(path, (error as Error).message, name, error);
  }
};

const objectIn = (text: string): StatusBody | undefined => {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null && !Array.isArray(body) ? (body as StatusBody) : undefined;
  } catch {
    return undefined;
  }
};

/** What the file holds now; undefined where there is none, or it is not a dict. */
export const peekStatus = async (path: string): Promise<StatusBody | undefined> =>
  objectIn((await readText(path).catch(() => undefined)) ?? "");

/**
 * Waits until the file is there. A file that is being written in place gets a moment to become whole. Rejects when `stop`
 * aborts.
 */
export const awaitStatus = async (
  path: string,
  { patienceMs = PATIENCE_MS, stop }: { readonly patienceMs?: number; readonly stop?: AbortSignal } = {},
): Promise<StatusBody> => {
  const until = performance.now() + patienceMs;
  for (let seen: string | undefined, same = 0; ;) {
    const text = await readText(path);
    const body = text === undefined ? undefined : objectIn(text);
    if (body !== undefined) return body;
    same = text !== undefined && text === seen ? same + 1 : 0;
    seen = text;
    const isOver = performance.now() > until;
    if (text !== undefined && (same >= 10 || isOver))
      throw new SlipwayError("wrap-failed", {
        detail: `${path} does not hold a JSON dict`,
        remedy: 'Write {"parameters": {...}} into it.',
      });
    if (isOver)
      throw new SlipwayError("wrap-failed", {
        detail: `the status file ${path} did not appear within ${patienceMs / 1000} s`,
        remedy: "Whoever starts a wrapper writes it, with `parameters`; --start does so too.",
      });
    await sleep(PAUSE_MS, undefined, { signal: stop });
  }
};

/** The status file, and what lies beside it, must be in a directory that the wrapper may write to. */
export const unwritable = (path: string, error: unknown): SlipwayError => {
  const isFull = ["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException).code ?? "");
  return new SlipwayError(
    "wrap-failed",
    {
      detail: `${path} cannot be written: ${(error as Error).message}`,
      remedy: isFull
        ? "Make room there, or name a status file elsewhere."
        : "--status-file names a file in a directory that exists and that you may write to.",
    },
    error,
  );
};

/** Changes some keys and keeps all others; undefined takes a key out. A reader sees the old file or the new one. */
export const updateStatus = async (path: string, changes: StatusBody): Promise<void> => {
  const text = await readText(path);
  const before = objectIn(text ?? "");
  // what cannot be understood is not ours to destroy
  if (text !== undefined && text.trim() !== "" && before === undefined) await rename(path, besides(path, "bad"));
  const merged = Object.fromEntries(
    Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined),
  );
  try {
    await replaceFile(path, `${JSON.stringify(merged, null, 2)}\n`, { sync: false });
  } catch (error) {
    throw unwritable(path, error);
  }
};

export const removeStatus = (path: string): Promise<void> => rm(path, { force: true });
