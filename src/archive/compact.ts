import type { RunId } from "../core/ids.ts";
import { join } from "node:path";
import { isFinishedRun, ownMap } from "../core/run.ts";
import { JudgedBefore, type ReplayFollower, createReplay, encodeState, summarise } from "../core/snapshot.ts";
import { agentsOfRun } from "../core/task-job.ts";
import { NO_EFFECTS, type RunSummary, type State, createState } from "../core/state.ts";
import { type SegmentMark, type SnapshotInfo, readJournal, writeSnapshot } from "../journal/index.ts";
import { SlipwayError } from "../errors.ts";
import type { Feed } from "../server/feed.ts";
import { pageCodec, readArchiveSync, writeArchive } from "./archive.ts";

/**
 * Compaction: replays the journal up to a mark and writes the resulting state as a snapshot, ended runs to files of
 * their own. It runs in a separate process, so that it never holds up the server, and uses the same replay as a
 * restart.
 */

export interface Compacted {
  readonly snapshot: SnapshotInfo;
  readonly archived: readonly RunSummary[];
  /** Every file that the snapshot names. */
  readonly files: readonly string[];
}

export interface ReplayOptions {
  /** The limit for losses of format 1 about which nothing was decided, unless a server has judged them before. */
  readonly losses?: number;
  /** Makes a feed that sees the past events; nothing in them is carried out again. */
  readonly feed?: () => Feed;
  readonly upTo?: number;
}

type Read = (replay: (type: number, payload: Uint8Array, lsn: number) => void) => Promise<unknown>;

/** The state that a journal holds. Once undecided losses have been judged, it depends on nothing but the journal. */
export const replayState = async (home: string, read: Read, options: ReplayOptions = {}): Promise<State> => {
  const { losses, feed, upTo = Infinity } = options;
  const state = createState(losses);
  const follow = feed?.();
  const replay = createReplay(state, pageCodec, {
    restore: (summary) => readArchiveSync(home, summary.file),
    ...(follow === undefined ? {} : { follow: pastEffects(follow) }),
  });
  try {
    await read((type, payload, lsn) => {
      if (lsn <= upTo) replay(type, payload);
    });
  } catch (error) {
    if (!(error instanceof JudgedBefore)) throw error;
    return replayState(home, read, { ...options, losses: error.limit });
  }
  replay.end();
  return state;
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
      attemptOver: (run, row, attempt) => feed.attemptOver(run, row, attempt, () => at),
      ended: (run, row) => feed.taskEnded(run, row, () => at),
      finished: (run) => feed.publish({ event: "run.finished", run: run.id }, at),
    },
  };
};

export const compact = async (home: string, upTo: SegmentMark): Promise<Compacted> => {
  const dir = join(home, "journal");
  const state = await replayState(home, (replay) => readJournal(dir, replay), { upTo: upTo.lastLsn });
  // a snapshot is history: what nobody has decided must not enter it as a guess
  if (state.undecided > 0)
    throw new SlipwayError("internal", {
      detail: `${state.undecided} losses were never judged; start the server first`,
    });
  const archived = new Map<RunId, RunSummary>();
  for (const run of state.runs.values()) {
    if (!isFinishedRun(run)) continue;
    for (const agent of agentsOfRun(state, run.id)) run.agents = ownMap(run.agents).set(agent.id, agent);
    archived.set(run.id, summarise(run, await writeArchive(home, run)));
  }
  const snapshot = await writeSnapshot({ dir, upTo }, encodeState(state, archived, pageCodec));
  const files = [...state.archived.values(), ...archived.values()].map(({ file }) => file);
  return { snapshot, archived: [...archived.values()], files };
};
