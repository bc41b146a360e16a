import type { LaunchAbout, LaunchFiles, LaunchState } from "./launch.ts";
import type { LostEntry, OutputLost } from "./output-lost.ts";
import type { Peak } from "./peak.ts";
import type { Resources } from "./resources.ts";
import type { RetrySet } from "./retry-set.ts";
import type { RunSpec } from "./spec.ts";
import type { PilotState } from "./states.ts";
import type { AgentId, LaunchId, PilotId, Row, RunId, TaskJobId } from "./ids.ts";
import type { ElementState } from "./task-job.ts";

/**
 * What happened, as the journal keeps it. State is nothing but these events applied in order. `at` is the server's
 * clock in epoch milliseconds. Events carry ranges and columns, never one record per task of an array.
 */
export type Event =
  | ServerStarted
  | RunOpened
  | RunItems
  | RunCommitted
  | RunCanceled
  | RunRetried
  | RunRequests
  | TasksAssigned
  | TasksReturned
  | TasksEnded
  | RanksEnded
  | TasksFailed
  | TasksSkipped
  | InputsSeen
  | AgentJoined
  | AgentsLost
  | LossesJudged
  | PilotRequested
  | PilotChanged
  | TaskJobRequested
  | TaskJobChanged
  | LaunchRequested
  | LaunchChanged
  | LaunchRemoved;

export interface ServerStarted {
  readonly type: "server.started";
  readonly at: number;
  readonly epoch: number;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** The host's boot and its uptime at the start: from them a successor continues the same clock. */
  readonly bootId?: string;
  readonly uptimeMs?: number;
}

/** A submission begins; nothing of it is visible before its commit. */
export interface RunOpened {
  readonly type: "run.opened";
  readonly at: number;
  readonly run: RunId;
  readonly uuid: string;
  readonly spec: RunSpec;
  /** Digest of the request's document: a different document under the same uuid is refused. */
  readonly digest?: string;
}

/** Items of a list, in order; strings as `{item}` shows them, JSON text where `json` is set. */
export interface RunItems {
  readonly type: "run.items";
  readonly run: RunId;
  readonly group: number;
  readonly json: boolean;
  readonly items: readonly string[];
}

export interface RunCommitted {
  readonly type: "run.committed";
  readonly at: number;
  readonly run: RunId;
  /** Rows that the run it resumes has done, as `[from, count, …]`: they are DONE at once. */
  readonly skipped?: readonly number[];
}

export interface RunCanceled {
  readonly type: "run.canceled";
  readonly at: number;
  readonly run: RunId;
  /** Rows, or undefined for all that have not ended. */
  readonly rows?: readonly number[];
  readonly reason: string;
}

export interface RunRetried {
  readonly type: "run.retried";
  readonly at: number;
  readonly run: RunId;
  readonly which: "failed" | "all";
  /** Only these rows, as `[from, count, …]`, whatever their state: what was asked for, as it was found then. */
  readonly rows?: readonly number[];
  /** What they ask for this time, instead of what the run's file says. */
  readonly set?: RetrySet;
}

/** What the tasks of a group that have not begun ask for from now on, as was learned (`mem: auto`). */
export interface RunRequests {
  readonly type: "run.requests";
  readonly at: number;
  readonly run: RunId;
  readonly group: number;
  /** Bytes; absent: as before. */
  readonly mem?: number;
  /** Seconds; absent: as before. */
  readonly timeRequest?: number;
}

/** Rows of one run as `[from, count, from, count, …]`. */
export interface RowRanges {
  readonly run: RunId;
  readonly ranges: readonly number[];
}

/** Tasks given to an agent: each begins its next attempt. Journaled before the agent learns of it. */
export interface TasksAssigned {
  readonly type: "tasks.assigned";
  readonly at: number;
  readonly agent: AgentId;
  readonly parts: readonly RowRanges[];
  /**
   * Tasks handed ahead, which the agent begins when the one task that each still waits for, which it has too, has ended
   * there with exit code 0. In order: none stands before the one it waits for.
   */
  readonly ahead?: readonly RowRanges[];
  /** One task whose ranks run on several agents of one pilot, `agent` first: how many ranks each has. */
  readonly gang?: { readonly agents: readonly number[]; readonly ranks: readonly number[] };
}

/** Tasks that an agent gave back untouched: as if the attempt had never begun. */
export interface TasksReturned {
  readonly type: "tasks.returned";
  readonly at: number;
  readonly agent: AgentId;
  readonly parts: readonly RowRanges[];
}

/** How an attempt ended. */
export const Ending = {
  EXIT: 0,
  SIGNAL: 1,
  /** It could not be started: directory, output file, or no such program. */
  NOT_STARTED: 2,
  TIME_LIMIT: 3,
  MEMORY: 4,
  CANCELED: 5,
  /** Ended because its agent ended (drained, asked to stop), or by the signal before that: runs again at no cost. */
  INTERRUPTED: 6,
  /** Killed at its pilot's end because it ignored the signal: a loss, and counted as one. */
  CUT_OFF: 7,
  /** Its spawner ended while it ran: a loss. It runs alone in a spawner from then on. */
  SPAWNER_LOST: 8,
  /** Exit code 0, but an output that it declares is not there: a failure. */
  NO_OUTPUT: 9,
} as const;

/** In the code column: there is neither an exit code nor a signal. */
export const NO_CODE = -1000;

/** One fact about many tasks: a number for each of them, or a single number that holds for all. */
export type Column<T extends ArrayLike<number>> = number | T;

/** Results of one run's tasks, one column per fact, for each of `rows`. */
export interface ResultColumns {
  readonly run: RunId;
  readonly rows: Uint32Array;
  readonly attempt: Column<Uint16Array>;
  readonly ending: Column<Uint8Array>;
  /** Exit code, minus the signal's number, or NO_CODE. */
  readonly code: Column<Int16Array>;
  readonly started: Column<Float64Array>;
  readonly finished: Column<Float64Array>;
  readonly outAt: Column<Float64Array>;
  readonly outBytes: Column<Float64Array>;
  readonly errBytes: Column<Float64Array>;
  /** Texts for the few results that need one: index into the columns → reason. */
  readonly details: readonly (readonly [number, string])[];
  /** The few results whose output was not kept whole; outBytes and errBytes count what was kept. */
  readonly lost?: readonly LostEntry[];
  /** Peak memory in pages (peak.ts) and who saw it, 0 where nobody could tell; both absent where all are 0. */
  readonly peak?: Column<Uint32Array>;
  readonly peakBy?: Column<Uint8Array>;
  /** CPU time in units of cpu-time.ts, 0 where it was not measured; absent where all are 0. */
  readonly cpu?: Column<Uint32Array>;
  /** The kernel's part of it, and what was read from storage and written to it, in units of usage.ts; absent likewise. */
  readonly system?: Column<Uint32Array>;
  readonly read?: Column<Uint32Array>;
  readonly written?: Column<Uint32Array>;
}

/** A message of results. (agent, seq) makes it idempotent: a repeated one changes nothing. */
export interface TasksEnded {
  readonly type: "tasks.ended";
  readonly at: number;
  readonly agent: AgentId;
  readonly seq: number;
  readonly parts: readonly ResultColumns[];
  /** The losses among these results (CUT_OFF) that were one too many; see AgentsLost. */
  readonly givenUp?: readonly GivenUp[];
  /** Tasks among these that were killed for memory and are tried again with more, as decided then. */
  readonly grown?: readonly Grown[];
}

/** Rows of one run, and the bytes of memory that each gets from now on. */
export interface Grown {
  readonly run: RunId;
  readonly rows: readonly number[];
  readonly mem: readonly number[];
}

/** Rows of one run that were lost too often: they fail instead of running again. */
export interface GivenUp {
  readonly run: RunId;
  readonly rows: readonly number[];
}

/** The ranks of one attempt on an agent that is not its head have ended. A repeated one changes nothing. */
export interface RanksEnded {
  readonly type: "ranks.ended";
  readonly at: number;
  readonly run: RunId;
  readonly row: Row;
  readonly attempt: number;
  readonly agent: AgentId;
  readonly ending: number;
  readonly code: number;
  readonly detail: string;
  readonly outAt: number;
  readonly outBytes: number;
  readonly errBytes: number;
  readonly lost?: OutputLost | undefined;
  /** The largest of its ranks. */
  readonly peak?: Peak | undefined;
  /** What all its ranks used, in units of usage.ts. */
  readonly cpu?: number | undefined;
  readonly system?: number | undefined;
  readonly read?: number | undefined;
  readonly written?: number | undefined;
}

/** Waiting tasks that nobody will run: they fail without an attempt. Rows that an agent has, or that ended, stay. */
export interface TasksFailed {
  readonly type: "tasks.failed";
  readonly at: number;
  readonly reason: string;
  readonly parts: readonly RowRanges[];
}

/** Tasks that could be placed and need not run: their outputs are there and up to date. Those that an agent has stay. */
export interface TasksSkipped {
  readonly type: "tasks.skipped";
  readonly at: number;
  readonly parts: readonly RowRanges[];
}

/** What was in the inputs of tasks that are about to run (`skip: content`), as a number for each of `rows`, never 0. */
export interface InputsSeen {
  readonly type: "inputs.seen";
  readonly at: number;
  readonly run: RunId;
  readonly rows: readonly number[];
  readonly contents: readonly number[];
}

export interface AgentJoined {
  readonly type: "agent.joined";
  readonly at: number;
  readonly agent: AgentId;
  /** Made by the agent when it starts: one process, one uuid. */
  readonly uuid: string;
  readonly pilot: PilotId;
  /** For an agent started by hand: the cluster it counts towards. */
  readonly cluster?: string;
  readonly queue?: string;
  readonly host: string;
  readonly version: string;
  readonly resources: Resources;
  /** The file of its output stream. */
  readonly output: string;
  /** It runs in the job of one task. */
  readonly taskJob?: { readonly id: TaskJobId; readonly element: number };
  /** Results up to this number do not belong to this agent: it was given up under another id before. */
  readonly seq: number;
}

/** Agents that are surely gone, or whose lease is over: their tasks run again, as losses. */
export interface AgentsLost {
  readonly type: "agents.lost";
  readonly at: number;
  readonly agents: readonly number[];
  readonly reason: string;
  /** It ended after giving everything back: nothing was lost. */
  readonly orderly?: boolean;
  /**
   * Decided by the limit of that time, so that no replay decides again by a different one. Absent only in a journal of
   * format 1: LossesJudged says which limit judged those.
   */
  readonly givenUp?: readonly GivenUp[];
  /** When the attempts lost here began, as far as their agents had reported: no result will ever say. */
  readonly started?: readonly {
    readonly run: RunId;
    readonly rows: readonly number[];
    readonly at: readonly number[];
    /** Where the last chunk of their output starts, -1 for none. */
    readonly outAt?: readonly number[];
  }[];
}

/** The limit that was applied, once, to all earlier losses about which nothing had been decided. */
export interface LossesJudged {
  readonly type: "losses.judged";
  readonly at: number;
  readonly limit: number;
}

/** The intent to start a pilot, journaled before the workload manager is asked. */
export interface PilotRequested {
  readonly type: "pilot.requested";
  readonly at: number;
  readonly pilot: PilotId;
  readonly cluster: string;
  readonly queue: string;
  /** Unique: finds the job again when the manager's answer was lost. */
  readonly jobName: string;
  /** The decision that led to it, in a sentence; earlier versions did not say. */
  readonly why?: string;
}

export interface PilotChanged {
  readonly type: "pilot.changed";
  readonly at: number;
  readonly pilot: PilotId;
  readonly state: PilotState;
  readonly nativeId?: string;
  readonly reason?: string;
  /** The head and tail of what its job printed, if it did not start. */
  readonly output?: string;
  /** It was asked to take nothing new. */
  readonly draining?: boolean;
}

/** The intent to hand tasks of one run to a manager, as one job or one array of jobs; journaled before it is asked. */
export interface TaskJobRequested {
  readonly type: "task-job.requested";
  readonly at: number;
  readonly job: TaskJobId;
  readonly cluster: string;
  readonly queue: string;
  /** Ends with twelve hex digits of its own, by which it is found again when the manager's answer was lost. */
  readonly jobName: string;
  readonly run: RunId;
  /** The tasks of its elements, in the order of their numbers; each waits, and no other job carries it. */
  readonly rows: readonly Row[];
}

/** The manager took it, or something happened to some of its elements. */
export interface TaskJobChanged {
  readonly type: "task-job.changed";
  readonly at: number;
  readonly job: TaskJobId;
  /** The manager's id for all of it, and of each element where these cannot be told from it (OAR). */
  readonly nativeId?: string;
  readonly nativeIds?: readonly string[];
  /** Which elements changed; absent: all. */
  readonly elements?: readonly number[];
  readonly state?: ElementState;
  readonly reason?: string;
  /** Their jobs are to leave the manager: whatever becomes of them, no attempt is lost. */
  readonly takenBack?: true;
}

/** The intent to launch a job, journaled before the workload manager is asked; its directory is staged by then. */
export interface LaunchRequested {
  readonly type: "launch.requested";
  readonly at: number;
  readonly launch: LaunchId;
  readonly uuid: string;
  readonly cluster: string;
  readonly user: string;
  readonly jobName: string;
  readonly directory: string;
  readonly files: LaunchFiles;
  readonly tokenHash: string;
  readonly about: LaunchAbout;
}

export interface LaunchChanged {
  readonly type: "launch.changed";
  readonly at: number;
  readonly launch: LaunchId;
  readonly state?: LaunchState;
  readonly nativeId?: string;
  readonly raw?: string;
  readonly reason?: string;
  readonly exitCode?: number;
  readonly signal?: number;
  readonly hosts?: readonly string[];
  readonly excerpt?: string;
  /** Someone asked for its end: a successor of this server asks again. */
  readonly cancelBy?: string;
  /** Its directory was removed. */
  readonly cleaned?: boolean;
}

/** Nothing about it is kept any more. */
export interface LaunchRemoved {
  readonly type: "launch.removed";
  readonly at: number;
  readonly launch: LaunchId;
}
