import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { LogPiece, LogQuery } from "../api/service.ts";
import { attemptsOf, currentAttempt, droppedOf, KEPT_FIRST, KEPT_LAST } from "../core/past-attempts.ts";
import { type Attempt, type Run, groupOf, indexOfRow } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { isFinalTask } from "../core/states.ts";
import { stateOf } from "../core/table.ts";
import { agentOf } from "../core/task-job.ts";
import { SlipwayError } from "../errors.ts";
import { findLastChunk } from "./lost-output.ts";
import { readOutput } from "./output-reader.ts";
import { expandView, lostView } from "../views/views.ts";
import type { AgentId, Row, RunId } from "../core/ids.ts";

/** Output of tasks, from the agents' streams or from the files that the user named; even while it is being written. */

const FOLLOW_MS = 250;

export interface LogSource {
  readonly state: State;
  /** How far the output of a running attempt has come. */
  readonly tailOf: (agent: AgentId, run: RunId, row: Row) => number;
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
  });

/** Where the last chunk of an attempt is now: from its result, or from its agent's last report. */
export const lastChunk = (source: LogSource, run: Run, row: Row, attempt: Attempt): number =>
  attempt.outAt >= 0 ? attempt.outAt : attempt.agent === 0 ? -1 : source.tailOf(attempt.agent, run.id, row);

/** The same for a lost attempt: its agent may have written more than it reported. */
export const lostChunk = async (run: Run, row: Row, attempt: Attempt, stream: string | undefined): Promise<number> => {
  if (stream === undefined) return -1;
  try {
    return await findLastChunk(stream, attempt.outAt, { run: run.id, row, attempt: attempt.n });
  } catch (error) {
    // what it reported must be there; if it reported nothing, there may be no stream at all
    if (attempt.outAt < 0 && (error as NodeJS.ErrnoException).code === "ENOENT") return -1;
    throw new SlipwayError("output-damaged", { path: stream, offset: 0, detail: (error as Error).message }, error);
  }
};

async function* fileOutput(path: string, follow: () => boolean, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (;;) {
    const more = follow();
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    );
    if (size > at) {
      for await (const chunk of createReadStream(path, { start: at, end: size - 1 })) yield chunk as Uint8Array;
      at = size;
    }
    if (!more || signal.aborted) return;
    await pause(FOLLOW_MS, signal);
  }
}

/** Refuses an attempt that is not kept, and one whose file a later attempt has replaced. */
export const checkAttempt = (run: Run, row: Row, { attempt, stream }: LogQuery): void => {
  if (attempt === undefined) return;
  const task = `${run.id}.${indexOfRow(run, row)}`;
  const kept = attemptsOf(run, row);
  if (!kept.some(({ n }) => n === attempt)) {
    const had = kept.at(-1)?.n ?? 0;
    const detail =
      attempt <= had && droppedOf(run, row) > 0
        ? `; of its ${had} attempts the first ${KEPT_FIRST} and the last ${KEPT_LAST} are kept`
        : `; it has had ${had === 0 ? "none" : had}`;
    throw new SlipwayError("no-such-attempt", { task, attempt, detail });
  }
  // if attempts append, the file holds all of them
  const path = appended(run, row, stream) === null ? expandView(run, row, attempt)[stream] : null;
  const later = kept.find(({ n, started }) => n > attempt && started > 0);
  if (path === null || later === undefined || expandView(run, row, later.n)[stream] !== path) return;
  throw new SlipwayError("output-replaced", { task, attempt, path, by: later.n });
};

/** The output of a task's last attempt, or of the one asked for; with `follow`, until that attempt has ended. */
export async function* taskOutput(source: LogSource, run: Run, row: Row, query: LogQuery): AsyncGenerator<Uint8Array> {
  const { attempt: wanted } = query;
  const ended = (): boolean =>
    isFinalTask(stateOf(run.table, row)) || (wanted !== undefined && currentAttempt(run, row)?.n !== wanted);
  const path = expandView(run, row, wanted)[query.stream];
  if (path !== null) {
    // ranks started by agents have files of their own
    const { ranks } = groupOf(run.groups, row).spec;
    const count = ranks?.by === "agents" ? ranks.count : 0;
    const files = count === 0 ? [path] : Array.from({ length: count }, (_, rank) => `${path}.${rank}`);
    for (const file of files) yield* fileOutput(file, () => query.follow && !ended(), query.signal);
    return;
  }
  const fd = query.stream === "stdout" ? 1 : 2;
  let attempt = 0;
  let read = -1;
  let searched = 0;
  const shown = new Set<number>();
  for (;;) {
    const more = query.follow && !ended() && !query.signal.aborted;
    const last = attemptsOf(run, row).findLast(({ n }) => n === (wanted ?? n));
    if (last !== undefined) {
      if (last.n !== attempt) {
        read = -1;
        shown.clear();
      }
      attempt = last.n;
      const stream = agentOf(source.state, run, last.agent)?.output;
      let at = lastChunk(source, run, row, last);
      // if there is a result, it says everything
      if (last.lost && last.outBytes + last.errBytes === 0) {
        at = searched === last.n ? read : await lostChunk(run, row, last, stream);
        searched = last.n;
      }
      if (at >= 0 && at !== read && stream !== undefined) {
        yield* readOutput(stream, at, { fd, since: read });
        read = at;
      }
      // ranks on other agents: reported when they have ended
      for (const part of run.rankOutputs.get(row) ?? []) {
        const file = agentOf(source.state, run, part.agent)?.output;
        if (part.attempt !== attempt || shown.has(part.agent) || file === undefined) continue;
        shown.add(part.agent);
        yield* readOutput(file, part.outAt, { fd });
      }
    }
    if (!more) return;
    await pause(FOLLOW_MS, query.signal);
  }
}

/** The file that a task appends to, perhaps along with others; null if there is none. */
const appended = (run: Run, row: Row, stream: LogQuery["stream"]): string | null =>
  groupOf(run.groups, row).spec.append === true ? expandView(run, row)[stream] : null;

/** The output of all tasks of a run in order; with `follow`, also of those that come later. */
export async function* runOutput(source: LogSource, run: Run, query: LogQuery): AsyncGenerator<LogPiece> {
  const pieces = async function* (row: Row, query: LogQuery): AsyncGenerator<LogPiece> {
    const task = `${run.id}.${indexOfRow(run, row)}`;
    for await (const chunk of taskOutput(source, run, row, query)) {
      const data = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("base64");
      yield { task, data };
    }
    const outputLost = lostView(attemptsOf(run, row).at(-1)?.outputLost);
    if (outputLost !== null) yield { task, data: "", outputLost };
  };
  const quiet = { ...query, follow: false };
  const files = new Set<string>();
  /** Whether a file that this task shares with others was already shown. */
  const isRepeated = (row: Row): boolean => {
    const file = appended(run, row, query.stream);
    if (file === null || files.has(file)) return file !== null;
    files.add(file);
    return false;
  };
  if (!query.follow) {
    for (let row = 0; row < run.total && !query.signal.aborted; row += 1)
      if (!isRepeated(row)) yield* pieces(row, quiet);
    return;
  }
  const shown = new Set<number>();
  for (;;) {
    const over = run.finished > 0 || query.signal.aborted;
    for (let row = 0; row < run.total && !query.signal.aborted; row += 1) {
      if (shown.has(row) || !isFinalTask(stateOf(run.table, row))) continue;
      // a file that others still write to is complete when all of them have ended
      if (!over && appended(run, row, query.stream) !== null) continue;
      shown.add(row);
      if (isRepeated(row)) continue;
      yield* pieces(row, quiet);
    }
    if (over) return;
    // a run of one task is followed while it runs
    if (run.total === 1) {
      shown.add(0);
      yield* pieces(0, query);
    } else await pause(FOLLOW_MS, query.signal);
  }
}
