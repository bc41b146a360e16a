import type { PackedColumns } from "../core/columns.ts";
import type { RowRanges } from "../core/events.ts";
import type { OutputLost } from "../core/output-lost.ts";
import type { Peak } from "../core/peak.ts";
import type { Resources } from "../core/resources.ts";
import type { Command, RankSpec } from "../core/spec.ts";
import type { AgentId, PilotId, Row, RunId, TaskJobId } from "../core/ids.ts";

/**
 * What server and agents say to each other over TLS: msgpack maps in length-prefixed frames, `t` is the kind.
 * Many tasks travel in one message; templates are sent once per run and agent.
 */

/** Attempts of one run that an agent has: `attempts[i]` of `rows[i]`. */
export interface HeldTasks {
  readonly run: RunId;
  readonly rows: readonly number[];
  readonly attempts: readonly number[];
}

export interface Hello {
  readonly t: "hello";
  readonly version: number;
  readonly slipway: string;
  readonly token: string;
  readonly uuid: string;
  readonly pilot: PilotId;
  /** For an agent started by hand: the cluster it counts towards. */
  readonly cluster?: string | undefined;
  readonly queue?: string | undefined;
  readonly host: string;
  readonly pid: number;
  readonly resources: Resources;
  readonly output: string;
  /** The highest epoch it has met: it refuses servers with a lower one. */
  readonly epoch: number;
  /** Sequence number of its last results. */
  readonly seq: number;
  readonly held: readonly HeldTasks[];
  /** Ranks whose attempts belong to other agents. */
  readonly parts: readonly HeldTasks[];
  /** Milliseconds until what still runs gets the signal to end with its pilot; absent: never. */
  readonly endsInMs?: number | undefined;
  /** It runs in the job of one task, and nothing else. */
  readonly taskJob?: { readonly id: TaskJobId; readonly element: number } | undefined;
  /** It takes tasks handed ahead; older agents do not, and do not say so. */
  readonly ahead?: boolean | undefined;
  /** It takes tasks that are groups of their own together; likewise. */
  readonly singles?: boolean | undefined;
  /** It takes groups that are alike as columns; likewise. */
  readonly alike?: boolean | undefined;
}

/** One attempt. */
export interface AttemptName {
  readonly run: RunId;
  readonly row: Row;
  readonly attempt: number;
}

/** How ranks ended: all with exit code 0, or the first that did not. */
interface RankOutcome {
  readonly ending: number;
  readonly code: number;
  readonly detail: string;
}

/** The ranks here have ended, of an attempt that belongs to another agent; repeated until it is known to be on disk. */
export interface RanksEndedMessage extends AttemptName, RankOutcome {
  readonly t: "ranks-ended";
  readonly outAt: number;
  readonly outBytes: number;
  readonly errBytes: number;
  readonly lost?: OutputLost | undefined;
  /** The largest of these ranks. */
  readonly peak?: Peak | undefined;
  /** What all of them used, in units of core/usage.ts. */
  readonly cpu?: number | undefined;
  readonly system?: number | undefined;
  readonly read?: number | undefined;
  readonly written?: number | undefined;
}

/** Results; kept by the agent until acknowledged. */
export interface Results {
  readonly t: "results";
  readonly seq: number;
  readonly parts: readonly PackedColumns[];
}

/** Attempts that have begun and still run, and how much output they have written. */
export interface Progress {
  readonly t: "progress";
  readonly tasks: readonly {
    readonly run: RunId;
    readonly row: Row;
    readonly attempt: number;
    readonly started: number;
    readonly outAt: number;
    /** Bytes of output that the agent has taken so far. */
    readonly kept?: number | undefined;
  }[];
  /** The same for ranks whose attempt belongs to another agent. */
  readonly parts?: readonly (AttemptName & { readonly kept: number })[] | undefined;
}

/** Tasks given back untouched. */
export interface Returned {
  readonly t: "returned";
  readonly parts: readonly RowRanges[];
}

export interface Ping {
  readonly t: "ping";
  /** From the server: how often to ask from now on, if that has changed since the welcome. */
  readonly heartbeatMs?: number;
}

/** The agent was asked to end: what it runs may finish, and it gives back whatever is assigned to it from now on. */
export interface Leaving {
  readonly t: "leaving";
  readonly reason: string;
  /** Its whole pilot was asked to end: the pilot's other agents may not know yet. Older peers do not know this field. */
  readonly pilotEnds?: boolean | undefined;
}

/** This agent has nothing left and ends. What was assigned to it meanwhile never began. */
export interface Bye {
  readonly t: "bye";
  readonly reason: string;
}

export type AgentMessage = Hello | Results | Progress | Returned | RanksEndedMessage | Ping | Leaving | Bye;

export interface Welcome {
  readonly t: "welcome";
  readonly agent: AgentId;
  readonly epoch: number;
  /** All results up to this one are on disk. */
  readonly acked: number;
  /** Attempts it has that were superseded: end them, report nothing. */
  readonly drop: readonly HeldTasks[];
  readonly heartbeatMs: number;
  /** The server's clock, which the agent uses for the times it reports. */
  readonly now?: number;
}

export interface Refused {
  readonly t: "refused";
  readonly code: string;
  readonly message: string;
  /** Whether trying again later may help. */
  readonly transient: boolean;
}

/** How much output of a run may be kept, in bytes. */
export interface OutputLimits {
  /** For one attempt, both streams together; with ranks, for each agent's part. */
  readonly perTask: number;
  readonly perRun: number;
  /** All agents together have reached the run's limit: only the last of each stream is kept. */
  readonly over: boolean;
}

/** One group's template. */
export interface GroupTemplate {
  readonly index: number;
  readonly name: string;
  readonly first: number;
  readonly command: Command;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  readonly stdout?: string | undefined;
  readonly stderr?: string | undefined;
  /** Several tasks write to these files: none of them truncates one. Agents before version 3 would truncate. */
  readonly append?: boolean | undefined;
  readonly timeLimit?: number | undefined;
  /** Files that must be there when a task has ended well. Agents of earlier versions do not look. */
  readonly outputs?: readonly string[] | undefined;
  readonly executor: "process" | "null";
  readonly pin?: boolean | undefined;
  readonly priority: number;
  readonly resources: Resources;
  /** For `{item}` of a range. */
  readonly range?: { readonly from: number; readonly step: number } | undefined;
  /** Items of a list are JSON texts. */
  readonly json: boolean;
  /** What separates the columns of items that are lines. */
  readonly colsep?: string | undefined;
  /** Nobody waits for the end of one of its tasks alone: results that are good can be gathered for longer. */
  readonly patient?: boolean | undefined;
}

/** Groups that differ in nothing but these four: each has one place in all columns. */
export interface AlikeGroups {
  readonly like: Omit<GroupTemplate, "index" | "first" | "name" | "command">;
  readonly index: readonly number[];
  readonly first: readonly number[];
  readonly name: readonly string[];
  readonly command: readonly Command[];
}

export interface Define {
  readonly t: "define";
  readonly run: RunId;
  readonly runName: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>> | undefined;
  readonly numbering: { readonly start: number; readonly step: number };
  readonly groups: readonly GroupTemplate[];
  /** Further groups. Only for agents that say they take them so. */
  readonly alike?: readonly AlikeGroups[];
  /** Sent with the first definition; agents of earlier versions do not know it. */
  readonly output?: OutputLimits;
}

/** Applies to what is written from now on. */
export interface OutputLimitsMessage extends OutputLimits {
  readonly t: "output";
  readonly run: RunId;
}

/** Tasks of one group. `attempts` is a single number if it is the same for all. */
export interface Assign {
  readonly t: "assign";
  readonly run: RunId;
  readonly group: number;
  readonly ranges: readonly number[];
  readonly attempts: number | readonly number[];
  /** Only for lists: the items of the rows, in order. */
  readonly items?: readonly string[];
  /** Only if resources depend on the item or the attempt. */
  readonly resources?: readonly Resources[];
  /** Only if some have another time limit than their group, in seconds; null: none. */
  readonly timeLimits?: readonly (number | null)[];
  /** Rows that were lost with their spawner: each gets one of its own. */
  readonly alone?: readonly number[];
  /** One task that was handed ahead: it begins when this attempt has ended here with exit code 0. */
  readonly behind?: Behind;
  /** Tasks that were handed ahead behind these follow in further messages. */
  readonly followed?: boolean;
}

/**
 * Tasks that are groups of their own, as graphs have them, without an item or resources of their own: `rows[i]` is the one
 * row of `groups[i]`. Only for agents that say they take them together.
 */
export interface Singles {
  readonly t: "singles";
  readonly run: RunId;
  readonly groups: readonly number[];
  readonly rows: readonly number[];
  readonly attempts: number | readonly number[];
  /** Those that were handed ahead, as in an assignment; null for others. */
  readonly behind?: readonly (Behind | null)[];
  /** As in an assignment: behind some of them others were handed ahead. */
  readonly followed?: boolean;
}

/** An attempt that another task lies behind. */
export interface Behind {
  readonly row: Row;
  readonly attempt: number;
  /** Nobody else waits for its result. */
  readonly only: boolean;
}

/** An agent's part of a task whose ranks run on several. The first agent, node 0, has the attempt. */
export interface Ranks extends AttemptName {
  readonly t: "ranks";
  readonly group: number;
  readonly item: string | undefined;
  /** For each rank. */
  readonly resources: Resources;
  /** Only if it is not the group's. */
  readonly timeLimit?: number;
  /** The position of this host among the hosts. */
  readonly node: number;
  readonly hosts: readonly string[];
  /** How many ranks each host has. */
  readonly ranks: readonly number[];
  readonly by: RankSpec["by"];
  /** It was lost with a spawner: its ranks share a spawner with no other task. */
  readonly alone?: boolean;
}

/** To the agent that has the attempt: all others are done, or one of them failed. */
export interface RanksDone extends AttemptName, RankOutcome {
  readonly t: "ranks-done";
}

/** The server has what it reported about its ranks on disk. */
export interface RanksKept extends AttemptName {
  readonly t: "ranks-kept";
}

/** The attempt is over, or superseded: end what is left of it here, and report only the output. */
export interface RanksOver extends AttemptName {
  readonly t: "ranks-over";
}

export interface Stop {
  readonly t: "stop";
  readonly tasks: readonly HeldTasks[];
}

export interface TakeBackRequest {
  readonly t: "takeback";
  readonly count: number;
}

export interface Ack {
  readonly t: "ack";
  readonly seq: number;
}

/** Take nothing new, give back what has not begun, end when empty; `now` also ends what runs, at no cost to the tasks. */
export interface Drain {
  readonly t: "drain";
  readonly now: boolean;
  readonly reason: string;
}

/** The run is over: its template may be dropped. */
export interface Forget {
  readonly t: "forget";
  readonly run: RunId;
}

export type ServerMessage =
  | Welcome
  | Refused
  | Define
  | OutputLimitsMessage
  | Assign
  | Singles
  | Ranks
  | RanksDone
  | RanksKept
  | RanksOver
  | Stop
  | TakeBackRequest
  | Ack
  | Drain
  | Forget
  | Ping;
