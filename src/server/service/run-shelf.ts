import { type Run, rowOfIndex } from "../../core/run.ts";
import type { State } from "../../core/state.ts";
import { SlipwayError } from "../../errors.ts";
import { readArchive } from "../../archive/archive.ts";

/** All runs, whether in memory or in the archive. */
export interface RunShelf {
  /** Newest first. */
  ids(): number[];
  has(id: number): boolean;
  /** A run with all its details, from memory or from its file. */
  whole(id: number): Promise<Run>;
}

/** How many runs read from the archive are kept for the next question. */
const CACHED_RUNS = 4;

export const createRunShelf = (state: State, home: string): RunShelf => {
  const cache = new Map<string, Promise<Run>>();

  const fromFile = async (file: string): Promise<Run> => {
    const known = cache.get(file) ?? readArchive(home, file);
    cache.delete(file);
    cache.set(file, known);
    if (cache.size > CACHED_RUNS) cache.delete(cache.keys().next().value!);
    try {
      return await known;
    } catch (error) {
      cache.delete(file);
      throw error;
    }
  };

  return {
    ids: () => [...new Set([...state.runs.keys(), ...state.archived.keys()])].sort((a, b) => b - a),
    has: (id) => state.runs.has(id) || state.archived.has(id),
    whole: async (id) => {
      const live = state.runs.get(id);
      if (live !== undefined) return live;
      const summary = state.archived.get(id);
      if (summary === undefined) throw new SlipwayError("no-such-run", { run: id });
      return fromFile(summary.file);
    },
  };
};

/** The row of a task by its number in the run. */
export const rowOfTask = (run: Run, index: number): number => {
  const row = rowOfIndex(run, index);
  if (row === undefined) throw new SlipwayError("no-such-task", { run: run.id, task: index });
  return row;
};
