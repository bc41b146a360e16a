import { open } from "node:fs/promises";
import { attemptsOf } from "../core/past-attempts.ts";
import { type Attempt, type Run, groupOf } from "../core/run.ts";
import { agentOf } from "../core/task-job.ts";
import { SlipwayError } from "../errors.ts";
import { expandView } from "../views/views.ts";
import { type LogSource, checkAttempt, lastChunk, lostChunk } from "./logs.ts";
import { readTail } from "./output-reader.ts";
import type { Row } from "../core/ids.ts";

/** The last lines that attempts wrote, for `show` and `why`: of each stream at most this much. */

const TAIL_BYTES = 4096;
const TAIL_LINES = 10;

type Stream = "stdout" | "stderr";

const fileTail = async (path: string): Promise<Buffer> => {
  const handle = await open(path, "r");
  try {
    const { size } = await handle.stat();
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, size - bytes.length);
    return bytes.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
};

/** From the file that the user named. Another attempt may have replaced it, or appends to it: then nobody can tell. */
const namedTail = async (run: Run, row: Row, attempt: Attempt, stream: Stream, path: string): Promise<Buffer> => {
  checkAttempt(run, row, { attempt: attempt.n, stream, follow: false, signal: new AbortController().signal });
  const { append, ranks } = groupOf(run.groups, row).spec;
  if (append === true && attemptsOf(run, row).at(-1)?.n !== attempt.n) return Buffer.alloc(0);
  // ranks started by agents have files of their own: the first speaks for all
  return fileTail(ranks?.by === "agents" ? `${path}.0` : path);
};

const keptTail = async (source: LogSource, run: Run, row: Row, attempt: Attempt, fd: 1 | 2): Promise<Buffer> => {
  const stream = agentOf(source.state, run, attempt.agent)?.output;
  if (stream === undefined) return Buffer.alloc(0);
  // a lost attempt may have written more than its agent reported
  const lost = attempt.lost && attempt.outBytes + attempt.errBytes === 0;
  const at = lost ? await lostChunk(run, row, attempt, stream) : lastChunk(source, run, row, attempt);
  let bytes = await readTail(stream, at, fd, TAIL_BYTES);
  for (const part of run.rankOutputs.get(row) ?? []) {
    const file = agentOf(source.state, run, part.agent)?.output;
    if (bytes.length > 0 || part.attempt !== attempt.n || file === undefined) continue;
    bytes = await readTail(file, part.outAt, fd, TAIL_BYTES);
  }
  return bytes;
};

/** What a reader gets of an attempt's stream that is empty, is gone, or cannot be told from another's: null. */
const tailOf = async (
  source: LogSource,
  run: Run,
  row: Row,
  attempt: Attempt,
  stream: Stream,
): Promise<string | null> => {
  const path = expandView(run, row, attempt.n)[stream];
  try {
    const bytes =
      path === null
        ? await keptTail(source, run, row, attempt, stream === "stdout" ? 1 : 2)
        : await namedTail(run, row, attempt, stream, path);
    const text = bytes.toString("utf8").trimEnd().split("\n").slice(-TAIL_LINES).join("\n");
    return text === "" ? null : text;
  } catch (error) {
    if (path !== null || (error instanceof SlipwayError && error.code === "output-replaced")) return null;
    return `(its output cannot be read: ${(error as Error).message})`;
  }
};

/** The last lines of stderr of the last attempt. */
export const stderrTail = async (source: LogSource, run: Run, row: Row): Promise<string | null> => {
  const last = attemptsOf(run, row).at(-1);
  return last === undefined ? null : tailOf(source, run, row, last, "stderr");
};

export interface Tails {
  readonly lastStdout: string | null;
  readonly lastStderr: string | null;
}

/** The last lines of each attempt that is kept, by its number. */
export const attemptTails = async (source: LogSource, run: Run, row: Row): Promise<ReadonlyMap<number, Tails>> => {
  const tails = new Map<number, Tails>();
  for (const attempt of attemptsOf(run, row))
    tails.set(attempt.n, {
      lastStdout: await tailOf(source, run, row, attempt, "stdout"),
      lastStderr: await tailOf(source, run, row, attempt, "stderr"),
    });
  return tails;
};
