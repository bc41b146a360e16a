import { readFile } from "node:fs/promises";
import { replaceFile } from "../../../replace-file.ts";
import { EMPTY, type SimulatedState } from "./model.ts";

/** The simulation's memory: one file, replaced as a whole, so that a restarted server finds its jobs again. */

const isState = (value: unknown): value is SimulatedState => {
  const state = value as Partial<SimulatedState> | null;
  return (
    typeof state === "object" &&
    state !== null &&
    state.version === 1 &&
    Number.isSafeInteger(state.next) &&
    typeof state.away === "object" &&
    state.away !== null &&
    Array.isArray(state.jobs) &&
    state.jobs.every(
      (job) =>
        Number.isSafeInteger(job.id) &&
        typeof job.name === "string" &&
        typeof job.directory === "string" &&
        Array.isArray(job.hosts) &&
        Array.isArray(job.processes),
    )
  );
};

/** Throws when what is there cannot be read: a simulation that forgot its jobs would leave their processes behind. */
export const readState = async (path: string): Promise<SimulatedState> => {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return EMPTY;
    throw error;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (isState(value)) return value;
  throw new Error(`${path} is not the state of a simulation; remove it when none of its jobs runs`);
};

export const writeState = (path: string, state: SimulatedState): Promise<void> =>
  replaceFile(path, `${JSON.stringify(state)}\n`);
