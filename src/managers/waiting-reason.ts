/** What a manager's own word for "not yet" means to a person, and what would help. Each manager has its rows. */
export interface WaitingReason {
  readonly meaning: string;
  readonly remedy: string;
}

export type WaitingRow = readonly [words: RegExp, meaning: string, remedy: string];

export const NOTHING = "Nothing to do: it starts by itself.";
export const ADMINISTRATOR = "Ask the cluster's administrators.";
export const LESS = "Ask for less (nodes, cores, memory, gpus, walltime) in the queue, or for fewer pilots at once.";

/** Undefined for words that are not known: then the manager's own word must do. */
export const waitingReason = (rows: readonly WaitingRow[], reason: string): WaitingReason | undefined => {
  const row = rows.find(([words]) => words.test(reason.trim()));
  return row === undefined ? undefined : { meaning: row[1], remedy: row[2] };
};
