import type { JobStatus } from "../managers/provider.ts";
import type { Waiting } from "../managers/waiting-words.ts";
import type { TaskJobId } from "../core/ids.ts";

/** What a keeper knows about its jobs that no successor needs. Elements by the key of roster.ts. */
export interface JobNotes {
  /** Submissions under way. */
  readonly underway: Set<TaskJobId>;
  /** Errors of submissions that the manager may or may not have taken. */
  readonly errors: Map<TaskJobId, string>;
  /** The manager says that they run, although no agent has come yet. */
  readonly begun: Set<string>;
  /** What the manager last said of one that waits. */
  readonly said: Map<string, Waiting>;
  /** What the manager said of jobs that could not be started. */
  readonly unstartable: Map<string, JobStatus>;
  forget(key: string): void;
}

export const createJobNotes = (): JobNotes => {
  const begun = new Set<string>();
  const said = new Map<string, Waiting>();
  const unstartable = new Map<string, JobStatus>();
  return {
    underway: new Set(),
    errors: new Map(),
    begun,
    said,
    unstartable,
    forget: (key) => {
      begun.delete(key);
      said.delete(key);
      unstartable.delete(key);
    },
  };
};
