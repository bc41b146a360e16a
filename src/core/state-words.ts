import type { LaunchState, PilotState, TaskState } from "./states.ts";
import type { RunState } from "./run.ts";

/**
 * What people read and write for a state, whatever it is the state of; the table of docs/glossary.md. JSON, the API and
 * the journal keep the names on the left.
 */
const WORDS = {
  NEW: "waiting",
  TMGR_SCHEDULING_PENDING: "ready",
  TMGR_SCHEDULING: "starting",
  TMGR_STAGING_INPUT_PENDING: "staging",
  TMGR_STAGING_INPUT: "staging",
  AGENT_STAGING_INPUT_PENDING: "staging",
  AGENT_STAGING_INPUT: "staging",
  AGENT_SCHEDULING_PENDING: "starting",
  AGENT_SCHEDULING: "starting",
  AGENT_EXECUTING_PENDING: "starting",
  AGENT_EXECUTING: "running",
  AGENT_STAGING_OUTPUT_PENDING: "staging",
  AGENT_STAGING_OUTPUT: "staging",
  TMGR_STAGING_OUTPUT_PENDING: "staging",
  TMGR_STAGING_OUTPUT: "staging",
  PMGR_LAUNCHING_PENDING: "waiting",
  PMGR_LAUNCHING: "starting",
  PMGR_ACTIVE_PENDING: "queued",
  PMGR_ACTIVE: "running",
  WAITING: "waiting",
  RUNNING: "running",
  DONE: "done",
  CANCELED: "cancelled",
  FAILED: "failed",
  LOST: "lost",
  pending: "waiting",
  running: "running",
  succeeded: "done",
  failed: "failed",
  cancelled: "cancelled",
  lost: "lost",
} as const satisfies Record<TaskState | PilotState | RunState | LaunchState | "LOST", string>;

const known: Readonly<Record<string, string>> = WORDS;

/** `running` for AGENT_EXECUTING; a name that is not in the table stays as it is. */
export const stateWord = (state: string): string => (Object.hasOwn(known, state) ? known[state]! : state);

/** The words of some states, each once, in their order. */
export const wordsOf = (states: readonly string[]): string[] => [...new Set(states.map(stateWord))];

/** Those of `among` that a person means: by their word, or by their name in JSON, in any case. Empty: none. */
export const statesMeant = <S extends string>(text: string, among: readonly S[]): S[] => {
  const given = text.trim().toLowerCase();
  const word = given === "canceled" ? "cancelled" : given;
  return among.filter((state) => state.toLowerCase() === given || stateWord(state) === word);
};
