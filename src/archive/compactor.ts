import { spawn } from "node:child_process";
import type { State } from "../core/state.ts";
import { forgetTaskJobs } from "../core/task-job.ts";
import type { Compacted } from "./compact.ts";
import { pruneArchives } from "./archive.ts";
import type { Journal } from "../journal/index.ts";
import { repeatTimer } from "../long-timer.ts";

/**
 * Decides when to fold the journal into a snapshot, and has a separate process do it: the server's loop never waits for
 * it (rule 2). Afterwards, ended runs leave memory and old segments are deleted.
 */

const JOURNAL_BYTES = 64 * 1024 * 1024;
const FINISHED_TASKS = 200_000;
const LOOK_MS = 5000;

export interface Compactor {
  /** Compacts now, whatever the size. Resolves when done. */
  compact(): Promise<void>;
  close(): Promise<void>;
}

export interface CompactorOptions {
  readonly home: string;
  readonly journal: Journal;
  readonly state: State;
  /** Archives that no snapshot names any more stay, like the journal's segments. */
  readonly keepHistory: boolean;
  /** argv of a process that compacts up to a mark and prints the outcome as JSON. */
  readonly command: (upTo: string) => readonly string[];
  readonly log: (text: string, facts?: object) => void;
}

export const createCompactor = (options: CompactorOptions): Compactor => {
  const { journal, state } = options;
  let underWay: Promise<void> | undefined;
  let failures = 0;
  let closed = false;

  const finishedTasks = (): number => {
    let sum = 0;
    for (const run of state.runs.values()) if (run.finished > 0) sum += run.total;
    return sum;
  };

  /** What it printed. */
  const runChild = (argv: readonly string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const child = spawn(argv[0]!, argv.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
      let out = "";
      let problem = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
      child.stderr.setEncoding("utf8").on("data", (text: string) => (problem = (problem + text).slice(-2000)));
      child.once("error", reject);
      child.once("close", (code) => {
        if (code !== 0) reject(new Error(problem.trim() === "" ? `compaction ended with ${code}` : problem.trim()));
        else resolve(out);
      });
    });

  const work = async (): Promise<void> => {
    const { upTo } = await journal.roll();
    // what cannot be read fails this compaction, not the server
    const { snapshot, archived, files } = JSON.parse(
      await runChild(options.command(JSON.stringify(upTo))),
    ) as Compacted;
    await journal.snapshotWritten(snapshot);
    for (const summary of archived) {
      const run = state.runs.get(summary.id);
      // a run that was retried since then stays; a replay begins with its archive
      if (run === undefined || run.finished !== summary.finished) continue;
      state.runs.delete(summary.id);
      state.archived.set(summary.id, summary);
    }
    forgetTaskJobs(state);
    if (!options.keepHistory) await pruneArchives(options.home, new Set(files));
    options.log(`the journal was compacted: ${snapshot.bytes} bytes, ${archived.length} runs archived`);
  };

  const compact = (): Promise<void> => {
    underWay ??= work()
      .then(() => {
        failures = 0;
      })
      .finally(() => {
        underWay = undefined;
      });
    return underWay;
  };

  const timer = repeatTimer(LOOK_MS, () => {
    if (closed || underWay !== undefined || journal.state !== "ok") return;
    const limit = 2 ** Math.min(failures, 6);
    if (journal.bytesSinceSnapshot < JOURNAL_BYTES * limit && finishedTasks() < FINISHED_TASKS * limit) return;
    compact().catch((error: unknown) => {
      failures += 1;
      options.log(`compaction failed: ${(error as Error).message}`);
    });
  });

  return {
    compact,
    close: async () => {
      closed = true;
      timer.stop();
      await underWay?.catch(() => undefined);
    },
  };
};
