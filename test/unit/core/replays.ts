import { expect } from "vitest";
import { compareStates } from "../../../src/core/compare.ts";
import { type Run, isFinishedRun } from "../../../src/core/run.ts";
import {
  JudgedBefore,
  type StateRecord,
  createReplay,
  createRunDecoder,
  encodeRun,
  encodeState,
  summarise,
} from "../../../src/core/snapshot.ts";
import { type RunSummary, type State, createState } from "../../../src/core/state.ts";
import { noRefusals, liveAreExact } from "./model.ts";

/** Snapshots and replays without a disk. */

/** Pages as they are, ended runs in a map instead of files. */
const pages = { pack: (bytes: Uint8Array) => bytes.slice(), unpack: (bytes: Uint8Array) => bytes };
const archive = new Map<string, StateRecord[]>();
const restore = ({ file }: RunSummary): Run => {
  const decode = createRunDecoder(pages);
  for (const part of archive.get(file)!) {
    const run = decode(part);
    if (run !== undefined) return run;
  }
  throw new Error(`${file} is cut short`);
};

/** The records in a snapshot of this state; all ended runs are archived. */
export const snapshotOf = (state: State): StateRecord[] => {
  const summaries = new Map<number, RunSummary>();
  for (const run of state.runs.values()) {
    if (!isFinishedRun(run)) continue;
    const file = `${archive.size}`;
    archive.set(file, [...encodeRun(run, pages)]);
    summaries.set(run.id, summarise(run, file));
  }
  return [...encodeState(state, summaries, pages)];
};

/** What a server whose setting is `losses` does. */
export const replayAll = (records: readonly StateRecord[], losses: number): State => {
  const state = createState(losses);
  const replay = createReplay(state, pages, { restore });
  try {
    for (const { type, payload } of records) replay(type, payload);
  } catch (error) {
    if (!(error instanceof JudgedBefore)) throw error;
    return replayAll(records, error.limit);
  }
  replay.end();
  noRefusals(state);
  return state;
};

/** Both say the same of everything. */
export const same = (a: State, b: State): void => {
  expect(compareStates({ state: a, restore }, { state: b, restore })).toEqual([]);
  for (const each of [a, b]) liveAreExact(each);
};
