import { join } from "node:path";
import type { Resources } from "../core/resources.ts";
import type { LongTimer } from "../long-timer.ts";
import type { TaskOutput } from "./output/stream.ts";
import type { Result } from "./results.ts";
import type { Slot } from "./slots.ts";
import type { RunTemplate } from "./templates.ts";
import type { Row, RunId } from "../core/ids.ts";

/** The owner of a task, which learns when the task is over. */
export interface TaskOwner {
  ended(task: AgentTask, result: Result): void;
  /** It was ended before it began: nothing of it ever ran. */
  dropped(task: AgentTask): void;
}

/** One attempt on this agent, from its assignment to its result. */
export interface AgentTask {
  /** Unique among the tasks of this agent; the spawner's name for it too. */
  readonly id: number;
  readonly owner: TaskOwner;
  readonly shape: string;
  readonly priority: number;
  readonly run: RunTemplate;
  readonly group: number;
  readonly row: Row;
  readonly attempt: number;
  readonly item: string | undefined;
  readonly resources: Resources;
  /** Seconds. */
  readonly timeLimit: number | undefined;
  /** It was lost with its spawner before: it gets a spawner of its own. */
  readonly alone: boolean;
  /** The task that was handed ahead behind this one, and the one that this one lies behind. */
  follower: AgentTask | undefined;
  before: AgentTask | undefined;
  /** Where it waits for a slot: the queue's own. */
  place: object | undefined;
  /** Tasks may be handed ahead behind it when it has ended. */
  readonly followed: boolean;
  /** Nobody but this task waits for the result of the one it lay behind. */
  readonly only: boolean;
  /** Process tasks that take turns in one slot; undefined while it waits for a slot. */
  chain: Chain | undefined;
  output: TaskOutput | undefined;
  pid: number;
  /** The monotonic clock at its start; 0 before. */
  started: number;
  /** The ending to report, if this agent ended it. */
  ending: number | undefined;
  detail: string | undefined;
  /** Its pilot is about to end, and it got the signal. */
  warned: boolean;
  /** Superseded: end it, report nothing. */
  dropped: boolean;
  limit: LongTimer | undefined;
  /** The tail of output that the server knows of, -2 before the first report. */
  reported: number;
  /** One of several processes that are one task together. */
  readonly rank: RankOfTask | undefined;
}

export interface RankOfTask {
  readonly number: number;
  /** Variables that say its place among the others. */
  readonly env: readonly string[];
  /** The words before the command that start the other ranks too; none where each agent starts its own ranks. */
  readonly launcher: readonly string[];
  /** How many ranks its process is or starts on this node; 0 for srun, which has the manager's daemons start them. */
  readonly below: number;
  /** Shared by the ranks of this agent. */
  readonly output: { current: TaskOutput | undefined };
}

/** A slot, and the tasks that the spawner runs in it one after the other: the first runs, the others wait there. */
export interface Chain {
  readonly slot: Slot;
  readonly shape: string;
  readonly members: AgentTask[];
}

/** What all its processes may have together; amounts are per rank, and a launcher's processes are all ranks here. */
export const memoryLimit = ({ resources, rank }: Pick<AgentTask, "resources" | "rank">): number | undefined =>
  resources["mem"] === undefined ? undefined : resources["mem"] * Math.max(1, rank?.below ?? 1);

/** One number for (run, row), for maps. */
export const taskKey = (run: RunId, row: Row): number => run * 2 ** 32 + row;

/** In the environment of everything that an attempt starts. */
export const tokenOf = (uuid: string, task: AgentTask): string =>
  `${uuid.slice(0, 8)}-${task.run.id}.${task.row}.${task.attempt}${task.rank === undefined ? "" : `.${task.rank.number}`}`;

/** What the names of this agent's files in `scratch` begin with. */
export const tmpdirPrefix = (scratch: string, uuid: string): string => join(scratch, `slipway-${uuid.slice(0, 8)}`);

/** Rows grouped by run, as ranges. */
export const toRanges = (tasks: Iterable<AgentTask>): { run: RunId; ranges: number[] }[] => {
  const byRun = new Map<number, number[]>();
  for (const task of tasks) {
    const rows = byRun.get(task.run.id);
    if (rows === undefined) byRun.set(task.run.id, [task.row]);
    else rows.push(task.row);
  }
  return [...byRun].map(([run, rows]) => {
    const ranges: number[] = [];
    for (const row of rows.sort((a, b) => a - b)) {
      if (ranges.length > 0 && ranges.at(-2)! + ranges.at(-1)! === row) ranges[ranges.length - 1]! += 1;
      else ranges.push(row, 1);
    }
    return { run, ranges };
  });
};
