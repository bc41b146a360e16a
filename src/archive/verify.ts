import { join } from "node:path";
import { type Difference, compareStates } from "../core/compare.ts";
import { encodeState } from "../core/snapshot.ts";
import type { State } from "../core/state.ts";
import { type History, openHistory } from "../journal/index.ts";
import { pageCodec, readArchiveSync } from "./archive.ts";
import { replayState } from "./compact.ts";

/**
 * `journal verify --deep`: the state that the next start reads, from snapshot and tail, must be the one that all events
 * lead to. The verdict says how far back that could be followed; it never guesses.
 */
export interface DeepVerdict {
  readonly ok: boolean;
  /** The newest snapshot, where a start begins. */
  readonly snapshot: string | null;
  readonly lastLsn: number;
  /**
   * `all`: with a replay of everything since the first record. `older`: with one from an older snapshot. `none`:
   * everything before the snapshot is gone, so only what follows it was tried.
   */
  readonly comparedWith: "all" | "older" | "none";
  /** The older snapshot. */
  readonly from: string | null;
  /** Records of the longer way. */
  readonly records: number;
  /** Losses that no server has judged yet; judged here by `losses` in clusters.yaml. */
  readonly undecided: number;
  readonly runs: number;
  /** The first differences: the value from snapshot and tail, then the value from the other way. */
  readonly differences: readonly Difference[];
}

const MOST_DIFFERENCES = 20;

export const verifyDeep = async (home: string, losses: number | undefined): Promise<DeepVerdict> => {
  const history = await openHistory(join(home, "journal"));
  try {
    return await compareWays(home, history, losses);
  } finally {
    await history.close();
  }
};

const compareWays = async (
  home: string,
  { newest, oldest }: History,
  losses: number | undefined,
): Promise<DeepVerdict> => {
  const side = (state: State) => ({ state, restore: ({ file }: { file: string }) => readArchiveSync(home, file) });
  let [lastLsn, records] = [0, 0];
  const state = await replayState(
    home,
    async (replay) => {
      ({ lastLsn, records } = await newest.read(replay));
    },
    losses === undefined ? {} : { losses },
  );
  // everything below leaves out what a running server adds meanwhile
  const options = { losses: state.lossLimit, upTo: lastLsn };
  const differences = (other: State): Difference[] => compareStates(side(state), side(other), MOST_DIFFERENCES);

  // what a compaction in the middle of the tail would produce: the next start must not notice
  const middle = Math.floor((newest.fromLsn + lastLsn) / 2);
  const half = await replayState(home, (replay) => newest.read(replay), { ...options, upTo: middle });
  const resumed = await replayState(
    home,
    async (replay) => {
      for (const { type, payload } of encodeState(half, new Map(), pageCodec)) replay(type, payload, middle);
      await newest.read((type, payload, lsn) => {
        if (lsn > middle) replay(type, payload, lsn);
      });
    },
    options,
  );
  let found = differences(resumed);
  const longer = oldest.from !== newest.from;
  if (longer) {
    const whole = await replayState(
      home,
      async (replay) => {
        ({ records } = await oldest.read(replay));
      },
      options,
    );
    const more = differences(whole);
    if (more.length > 0) found = more;
  }
  const complete = oldest.from === undefined && (longer || newest.from === undefined);
  return {
    ok: found.length === 0,
    snapshot: newest.from ?? null,
    lastLsn,
    comparedWith: complete ? "all" : longer ? "older" : "none",
    from: oldest.from ?? null,
    records,
    undecided: state.undecided,
    runs: state.runs.size + state.archived.size,
    differences: found,
  };
};
