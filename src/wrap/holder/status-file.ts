import { readFile, rename, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { SlipwayError } from "../../errors.ts";
import { replaceFile } from "../../replace-file.ts";

/** How long whoever starts a wrapper may take to write the file. */
const PATIENCE_MS = 20_000;
const PAUSE_MS = 100;

export type StatusBody = Readonly<Record<string, unknown>>;

/** A file beside the status file that belongs to it. */
export const besides = (statusFile: string, ending: string): string => `${statusFile}.${ending}`;

const readText = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new SlipwayError(
      "wrap-failed",
      {
        detail: `${path} cannot be read: ${(error as Error).message}`,
        remedy: "--status-file names a file of your own.",
      },
      error,
    );
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

/** Waits until the file is there. A file that is being written in place gets a moment to become whole. */
export const awaitStatus = async (path: string, patienceMs = PATIENCE_MS): Promise<StatusBody> => {
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
    await sleep(PAUSE_MS);
  }
};

/** The status file, and what lies beside it, must be in a directory that the wrapper may write to. */
export const unwritable = (path: string, error: unknown): SlipwayError =>
  new SlipwayError(
    "wrap-failed",
    {
      detail: `${path} cannot be written: ${(error as Error).message}`,
      remedy: "--status-file names a file in a directory that exists and that you may write to.",
    },
    error,
  );

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
