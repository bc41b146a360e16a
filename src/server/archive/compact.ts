import { join } from "node:path";
import { isFinishedRun } from "../../core/run.ts";
import { type ReplayFollower, createReplay, encodeState, linkRuns, summarise } from "../../core/snapshot.ts";
import { NO_EFFECTS, type RunSummary, type State, createState } from "../../core/state.ts";
import { type SegmentMark, type SnapshotInfo, readJournal, writeSnapshot } from "../journal/index.ts";
import type { Feed } from "../feed.ts";
import { pageCodec, readArchiveSync, writeArchive } from "./archive.ts";

/**
 * Compaction: replays the journal up to a mark and writes what came out as a snapshot, ended runs to files of their own.
 * It runs in a process of its own, so that it never holds up the server, and by the same replay that a restart uses.
 */

export interface Compacted {
  readonly snapshot: SnapshotInfo;
  readonly archived: readonly RunSummary[];
  /** Every file that the snapshot names. */
  readonly files: readonly string[];
}

/** Fills a state from a journal. What the events were is told to `feed`; nothing of it is carried out. */
export const replayInto = async (
  home: string,
  state: State,
  feed: Feed | undefined,
  read: (replay: (type: number, payload: Uint8Array, lsn: number) => void) => Promise<unknown>,
  upTo = Infinity,
): Promise<void> => {
  const replay = createReplay(state, pageCodec, {
    restore: (summary) => readArchiveSync(home, summary.file),
    ...(feed === undefined ? {} : { follow: pastEffects(feed) }),
  });
  await read((type, payload, lsn) => {
    if (lsn <= upTo) replay(type, payload);
  });
  linkRuns(state);
};

/** Past ends of tasks and runs, for `events`. */
const pastEffects = (feed: Feed): ReplayFollower => {
  let at = 0;
  return {
    event: (event) => {
      at = "at" in event ? event.at : at;
      feed.committed(event);
    },
    effects: {
      ...NO_EFFECTS,
      ended: (run, row) => feed.taskEnded(run, row, () => at),
      finished: (run) => feed.publish({ event: "run.finished", run: run.id }, at),
    },
  };
};

export const compact = async (home: string, upTo: SegmentMark): Promise<Compacted> => {
  const dir = join(home, "journal");
  const state = createState();
  await replayInto(home, state, undefined, (replay) => readJournal(dir, replay), upTo.lastLsn);
  const archived = new Map<number, RunSummary>();
  for (const run of state.runs.values()) {
    if (!isFinishedRun(run)) continue;
    archived.set(run.id, summarise(run, await writeArchive(home, run)));
  }
  const snapshot = await writeSnapshot({ dir, upTo }, encodeState(state, archived, pageCodec));
  const files = [...state.archived.values(), ...archived.values()].map(({ file }) => file);
  return { snapshot, archived: [...archived.values()], files };
};
