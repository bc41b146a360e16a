import { type FileHandle, open } from "node:fs/promises";
import { constants } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunView } from "../api/schemas.ts";
import type { TaskRowView } from "../api/task-table.ts";
import { type Client, isConnectionLost } from "../client/index.ts";
import { stateWord } from "../core/state-words.ts";
import { SlipwayError } from "../errors.ts";
import { commandLine } from "./render/text.ts";

/**
 * `--joblog FILE`: a line for each task that has ended, written while the run goes. GNU parallel's nine columns come
 * first, so that what reads its logs reads this one; then ours. A task that never began has no line, unless
 * it was skipped: that is done.
 */

const PARALLEL = ["Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command"] as const;
const OURS = ["Task", "State", "Attempts", "User", "System", "Memory", "Read", "Written", "Reason"] as const;

export const JOBLOG_HEAD = [...PARALLEL, ...OURS].join("\t");

/** One field: its separators are escaped, and it is never empty, because parallel's reader wants something there. */
const field = (value: string | number | null): string => {
  const text = value === null ? "" : String(value);
  return text === ""
    ? "-"
    : text.replaceAll("\\", "\\\\").replaceAll("\t", "\\t").replaceAll("\n", "\\n").replaceAll("\r", "\\r");
};

/** Commands are kept as they are typed, but for what would end the line or the field. */
const commandField = (command: readonly string[]): string =>
  commandLine(command).replaceAll("\n", "\\n").replaceAll("\r", "\\r").replaceAll("\t", " ") || "-";

/** Ended without an exit code or a signal: nothing was started. parallel's reader takes no negative number. */
const NO_CODE = 255;

const signalNumber = (signal: string | null): number =>
  signal === null ? 0 : (constants.signals[signal as NodeJS.Signals] ?? (Number(/\d+/.exec(signal)?.[0] ?? 0) || 0));

/** `seq`: its place in the run, from 1. */
export const joblogLine = (row: TaskRowView, seq: number): string => {
  const signal = signalNumber(row.signal);
  const started = row.started === null ? 0 : Date.parse(row.started) / 1000;
  return [
    seq,
    field(row.host),
    started.toFixed(3),
    (row.wall ?? 0).toFixed(3),
    0,
    (row.stdoutBytes ?? 0) + (row.stderrBytes ?? 0),
    row.exitCode ?? (signal === 0 && row.skipped !== true ? NO_CODE : 0),
    signal,
    commandField(row.command),
    row.id,
    stateWord(row.state),
    row.attempts,
    field(row.cpuUser),
    field(row.cpuSystem),
    field(row.peakMemory),
    field(row.readBytes),
    field(row.writtenBytes),
    field(row.reason),
  ].join("\t");
};

/** Rows that were written; a bit for each. */
const createSeen = () => {
  let bits = new Uint8Array(1024);
  let count = 0;
  return {
    /** False if it was there already. */
    add: (row: number): boolean => {
      const at = row >> 3;
      if (at >= bits.length) {
        const more = new Uint8Array(Math.max(at + 1, bits.length * 2));
        more.set(bits);
        bits = more;
      }
      const bit = 1 << (row & 7);
      if ((bits[at]! & bit) !== 0) return false;
      bits[at]! |= bit;
      count += 1;
      return true;
    },
    get count() {
      return count;
    },
  };
};

export interface Joblog {
  /** Writes what ends, until `done` is called; then what is missing, and closes the file. `left`: nobody follows it any more. */
  follow(run: number): { done(ended: RunView): Promise<void>; left(): Promise<void> };
  /** Without a run: leaves the file with its head. */
  close(): Promise<void>;
}

const POLL_MS = 1000;
const AT_ONCE = 64 * 1024;
const FINAL = ["DONE", "FAILED", "CANCELED"] as const;

/** Makes the file, or says why it cannot be made: before anything is submitted. */
export const openJoblog = async (client: Client, file: string, warn: (text: string) => void): Promise<Joblog> => {
  const name = path.resolve(file);
  let handle: FileHandle;
  try {
    handle = await open(name, "w");
    await handle.write(`${JOBLOG_HEAD}\n`);
  } catch (error) {
    throw new SlipwayError("usage", { detail: `--joblog: ${(error as Error).message}` }, error);
  }
  /** After an error the run goes on without its log. */
  let broken = false;
  const seen = createSeen();

  const write = async (run: number, text: string): Promise<void> => {
    if (broken || text === "") return;
    try {
      await handle.appendFile(text);
    } catch (error) {
      broken = true;
      warn(
        `the joblog ${name} cannot be written (${(error as Error).message}); the run is not affected. ` +
          `\`slipway wait ${run} --joblog FILE\` writes it whole, at any time.`,
      );
    }
  };

  const follow: Joblog["follow"] = (run) => {
    let since = 0;
    let numbering: RunView["numbering"] | undefined;
    const stop = new AbortController();
    /** What has ended since the last time, or all of it. */
    const gather = async (from: number | undefined): Promise<void> => {
      numbering ??= (await client.run(run)).numbering;
      let text = "";
      for await (const row of client.taskRows(run, { states: FINAL, endedSince: from })) {
        if (broken) return;
        if (row.finished !== null) since = Math.max(since, Date.parse(row.finished));
        const place = Math.round((row.index - numbering.start) / numbering.step);
        if ((row.started === null && row.skipped !== true) || !seen.add(place)) continue;
        text += `${joblogLine(row, place + 1)}\n`;
        if (text.length < AT_ONCE) continue;
        await write(run, text);
        text = "";
      }
      await write(run, text);
    };
    const poll = async (): Promise<void> => {
      while (!stop.signal.aborted && !broken) {
        try {
          await gather(since);
        } catch (error) {
          // the server may come back; what is missed now is written at the end
          if (!isConnectionLost(error) && !(error instanceof SlipwayError)) throw error;
        }
        await sleep(POLL_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    };
    const polling = poll();
    return {
      left: async () => {
        stop.abort();
        await polling;
        warn(`the joblog ${name} ends here: \`slipway wait ${run} --joblog FILE\` writes it whole, at any time`);
      },
      done: async (ended) => {
        stop.abort();
        await polling;
        await gather(since);
        // nodes' clocks differ: what ended before it was heard of is still missing
        if (seen.count < ended.total) await gather(undefined);
        await close();
      },
    };
  };

  const close = async (): Promise<void> => {
    await handle.close().catch(() => undefined);
  };
  return { follow, close };
};
