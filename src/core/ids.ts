/**
 * Ids are numbers on the wire and in the journal; in code each kind has a type of its own, so that an agent's id cannot
 * stand where a run's is meant. A plain number still passes where an id is read from the journal or counted up: the
 * compiler only refuses one kind in place of another.
 */
export type RunId = number & { readonly is?: "run" };
export type AgentId = number & { readonly is?: "agent" };
export type PilotId = number & { readonly is?: "pilot" };
export type LaunchId = number & { readonly is?: "launch" };
/** A submission of tasks as jobs of their own: one job, or one array of them. */
export type TaskJobId = number & { readonly is?: "task-job" };
/** A task's place in its run's table. */
export type Row = number & { readonly is?: "row" };
