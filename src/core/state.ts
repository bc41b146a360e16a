import type { Event, RunOpened } from "./events.ts";
import type { Gang } from "./gangs.ts";
import { PackedItems } from "./items.ts";
import type { Launch } from "./launch.ts";
import type { Resources } from "./resources.ts";
import type { RowShapeColumns } from "./row-shapes.ts";
import type { Attempt, Run } from "./run.ts";
import type { Pairing } from "./pairing.ts";
import type { Condition, Dependency } from "./spec.ts";
import type { PilotState } from "./states.ts";
import { Successes } from "./successes.ts";
import type { TaskJob } from "./task-job.ts";
import type { AgentId, LaunchId, PilotId, Row, RunId, TaskJobId } from "./ids.ts";

export interface Agent {
  readonly id: AgentId;
  readonly uuid: string;
  readonly pilot: PilotId;
  /** For an agent started by hand: the cluster it counts towards. */
  readonly cluster?: string;
  readonly queue?: string;
  readonly host: string;
  readonly version: string;
  readonly joined: number;
  readonly resources: Resources;
  readonly output: string;
  /** It runs in the job of one task. */
  readonly taskJob?: { readonly id: TaskJobId; readonly element: number };
  /** Highest sequence number of its results that was applied. */
  seq: number;
  /** When and why it was given up; 0 while it lives. */
  ended: number;
  reason: string;
}

export interface Pilot {
  readonly id: PilotId;
  readonly cluster: string;
  readonly queue: string;
  readonly jobName: string;
  readonly requested: number;
  state: PilotState;
  nativeId: string;
  reason: string;
  active: number;
  ended: number;
  /** The head and tail of what its job printed, if it did not start. */
  output?: string;
  /** It was asked to take nothing new. */
  draining?: boolean;
  /** The decision that led to it; absent where an earlier version asked for it. */
  readonly why?: string;
  /** The states it has come to, and when; absent where an earlier version wrote the snapshot. */
  readonly stays?: (readonly [PilotState, number])[];
}

/** What stays in memory of a run after its details have moved to disk. */
export interface RunSummary {
  readonly id: RunId;
  readonly uuid: string;
  readonly name: string;
  readonly total: number;
  readonly submitted: number;
  readonly started: number;
  readonly finished: number;
  /** Milliseconds between its ends and retries; absent where there were none. */
  readonly idle?: number;
  readonly canceled: string;
  readonly unneeded: number;
  /** Absent where there are none. */
  readonly skipped?: number;
  readonly resumes?: RunId;
  readonly retries: number;
  readonly losses: number;
  readonly counts: readonly number[];
  readonly numbering: { readonly start: number; readonly step: number };
  /** Digest of the document it was submitted with; absent where it was not kept. */
  readonly digest?: string;
  /** Tasks whose output was not kept whole, and how much of it. */
  readonly outputLost?: { readonly tasks: number; readonly bytes: number };
  /** Where its details are, relative to the home. */
  readonly file: string;
}

/** A submission whose commit has not come yet. */
export interface Draft {
  readonly opened: RunOpened;
  readonly items: Map<number, PackedItems>;
  /** For groups whose tasks ask for what their items say: what each asks for. */
  readonly rowShapes: Map<number, RowShapeColumns>;
  /** How groups are paired by their items, where that is known already. */
  readonly pairings: Map<Dependency, Pairing>;
}

/** When a server started, by its own clock and by its host's uptime. */
export interface StartMark {
  readonly at: number;
  readonly bootId: string;
  readonly uptimeMs: number;
}

export interface State {
  epoch: number;
  /** The last server's; null if it did not record one. */
  lastStart: StartMark | null;
  nextRun: RunId;
  nextAgent: AgentId;
  nextPilot: PilotId;
  nextLaunch: LaunchId;
  nextTaskJob: TaskJobId;
  readonly runs: Map<RunId, Run>;
  /** Those of them that have not ended: there may be many more that have, and only these have anything with agents. */
  readonly live: Set<Run>;
  readonly archived: Map<RunId, RunSummary>;
  readonly byUuid: Map<string, RunId>;
  readonly drafts: Map<RunId, Draft>;
  readonly agents: Map<AgentId, Agent>;
  readonly agentByUuid: Map<string, AgentId>;
  readonly pilots: Map<PilotId, Pilot>;
  /** Tasks that are jobs of their own; those that have ended leave with their run's details (task-job.ts). */
  readonly taskJobs: Map<TaskJobId, TaskJob>;
  /** By run and row: the job that carries a task, while that is requested or queued. */
  readonly carried: Map<RunId, Map<Row, TaskJobId>>;
  readonly launches: Map<LaunchId, Launch>;
  readonly launchByUuid: Map<string, LaunchId>;
  /** By run and row: attempts whose ranks run on several agents. */
  readonly gangs: Map<string, Gang>;
  /** Groups that wait for the end of another run. */
  readonly runDependents: Map<RunId, { readonly run: RunId; readonly group: number; readonly on: Condition }[]>;
  /** What the declared outputs of tasks came from. */
  readonly successes: Successes;
  /** The limit for losses that the journal does not decide: only those that format 1 wrote (`losses.judged`). */
  readonly lossLimit: number;
  /** How many losses were judged that way while no `losses.judged` has named the limit yet. */
  undecided: number;
  /** Moves refused since this state was made (moves.ts): always a fault, and not part of what happened. */
  readonly refused: { count: number; last: string };
}

export const createState = (lossLimit = 5): State => ({
  epoch: 0,
  lastStart: null,
  nextRun: 1,
  nextAgent: 1,
  nextPilot: 1,
  nextLaunch: 1,
  nextTaskJob: 1,
  runs: new Map(),
  live: new Set(),
  archived: new Map(),
  byUuid: new Map(),
  drafts: new Map(),
  agents: new Map(),
  agentByUuid: new Map(),
  pilots: new Map(),
  taskJobs: new Map(),
  carried: new Map(),
  launches: new Map(),
  launchByUuid: new Map(),
  gangs: new Map(),
  runDependents: new Map(),
  successes: new Successes(),
  lossLimit,
  undecided: 0,
  refused: { count: 0, last: "" },
});

/**
 * What applying an event asks for. Replay passes NO_EFFECTS: the past is never carried out again; queues and timers
 * are rebuilt from the state afterwards.
 */
export interface Effects {
  /** Rows that may be placed now. */
  ready(run: Run, from: number, count: number): void;
  /** What waits of a run is about to ask for something else: nothing of it may be placed until `requeue`. */
  unqueue(run: Run): void;
  requeue(run: Run): void;
  /** A row that may be placed at a later time. */
  delayed(run: Run, row: Row, until: number): void;
  /** A row that was handed ahead waits for nothing more: it counts at its agent from now on, like any other. */
  arrived(run: Run, row: Row, agent: AgentId): void;
  /** A row that an agent no longer has. */
  left(run: Run, row: Row, agent: AgentId): void;
  /** The agents of a gang have nothing more to do for it. */
  gangOver(gang: Gang): void;
  /** An agent must end this attempt. */
  stop(agent: AgentId, run: Run, row: Row, attempt: number): void;
  /** An attempt failed or was lost, and its task will run again. */
  attemptOver(run: Run, row: Row, attempt: Attempt): void;
  /** A task reached a final state (for those who follow events). */
  ended(run: Run, row: Row): void;
  /** Many tasks were cancelled at once. */
  canceled(run: Run, from: number, count: number): void;
  /** Many tasks need not run. */
  skipped(run: Run, from: number, count: number): void;
  finished(run: Run): void;
}

const nothing = (): void => undefined;

export const NO_EFFECTS: Effects = {
  ready: nothing,
  unqueue: nothing,
  requeue: nothing,
  delayed: nothing,
  arrived: nothing,
  left: nothing,
  gangOver: nothing,
  stop: nothing,
  attemptOver: nothing,
  ended: nothing,
  canceled: nothing,
  skipped: nothing,
  finished: nothing,
};

export type Apply<E extends Event> = (state: State, event: E, effects: Effects) => void;
