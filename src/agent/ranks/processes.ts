import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ending, NO_CODE } from "../../core/events.ts";
import { shapeKey } from "../../core/resources.ts";
import type { AssignedTasks } from "../assigned-tasks.ts";
import type { Executor } from "../executor.ts";
import type { OwnRanks } from "../../protocol/agent-settings.ts";
import type { Result } from "../results.ts";
import type { Slot } from "../slots.ts";
import type { AgentTask, RankOfTask, TaskOwner } from "../task.ts";
import { endedWell, type Outcome } from "./part-states.ts";
import type { Part } from "./part.ts";
import { firstRanks, hostFile, rankEnvironment, rankLaunch } from "./places.ts";
import { ownLaunch } from "./own-job.ts";

/** The processes of parts: one for each rank, or on the first node one launcher that starts them all. */
export interface RankProcesses {
  /** Makes the processes of a part that has its slots, and returns them for the caller to start. */
  make(part: Part, owner: TaskOwner): readonly AgentTask[];
  start(tasks: readonly AgentTask[]): void;
  end(part: Part, ending: number, detail: string): void;
  /** A process has ended; returns the part it belonged to. */
  ended(task: AgentTask): Part | undefined;
  /** Removes what was made for them. */
  cleanUp(part: Part): void;
}

export interface RankProcessesOptions {
  readonly uuid: string;
  readonly scratch: string;
  readonly executor: Pick<Executor, "start" | "end">;
  readonly make: AssignedTasks["make"];
  /** The whole job is the task's own. */
  readonly own: OwnRanks | undefined;
}

/** The result of a process that was ended before it began. */
export const neverBegan = (task: AgentTask, now: number): Result => ({
  run: task.run.id,
  row: task.row,
  attempt: task.attempt,
  ending: task.ending ?? Ending.INTERRUPTED,
  code: NO_CODE,
  started: now,
  finished: now,
  outAt: -1,
  outBytes: 0,
  errBytes: 0,
});

/** The failure that a process's end amounts to; undefined if it ended well. */
export const failureOf = (task: AgentTask, part: Part, result: Result): Outcome | undefined => {
  if (endedWell(result)) return undefined;
  const { ending, code } = result;
  const what = result.detail ?? (code < 0 ? `killed by signal ${-code}` : `exit code ${code}`);
  const { launcher, number } = task.rank!;
  const where = launcher.length > 0 ? "" : `rank ${number} on ${part.message.hosts[part.message.node]}: `;
  return { ending, code, detail: `${where}${what}` };
};

export const createRankProcesses = (options: RankProcessesOptions): RankProcesses => {
  const partOf = new Map<AgentTask, Part>();

  const makeOne = (part: Part, owner: TaskOwner, slot: Slot, rank: RankOfTask): AgentTask => {
    const { message } = part;
    const task = options.make({
      owner,
      shape: shapeKey(message.resources),
      priority: 0,
      run: part.run,
      group: message.group,
      row: message.row,
      attempt: message.attempt,
      item: message.item,
      resources: message.resources,
      timeLimit: message.timeLimit ?? part.run.groups.get(message.group)?.source.timeLimit,
      alone: message.alone === true,
      rank,
    });
    task.chain = { slot, shape: task.shape, members: [task] };
    part.processes.add(task);
    partOf.set(task, part);
    return task;
  };

  /** One process that starts all ranks, in the first slot of the first node; the other slots are kept for them. */
  const makeLauncher = (part: Part, owner: TaskOwner): AgentTask => {
    const { message } = part;
    const { run, row, attempt } = message;
    part.hostFile = join(options.scratch, `slipway-hosts-${options.uuid.slice(0, 8)}-${run}.${row}.${attempt}`);
    writeFileSync(part.hostFile, hostFile(message));
    const { argv, env } =
      options.own === undefined
        ? rankLaunch(message, part.hostFile, process.env, part.run.env)
        : ownLaunch(message, part.hostFile, options.own, part.run.env);
    const below = message.by === "srun" ? 0 : message.ranks[message.node]!;
    return makeOne(part, owner, part.slots[0]!, { number: 0, env, launcher: argv, below, output: part.output });
  };

  return {
    make: (part, owner) => {
      const { message, output } = part;
      if (message.by !== "agents") return part.head ? [makeLauncher(part, owner)] : [];
      const first = firstRanks(message.ranks)[message.node]!;
      return part.slots.map((slot, local) =>
        makeOne(part, owner, slot, {
          number: first + local,
          env: rankEnvironment(message, local),
          launcher: [],
          below: 1,
          output,
        }),
      );
    },

    start: (tasks) => {
      for (const task of tasks) options.executor.start(task, undefined);
    },

    end: (part, ending, detail) => {
      for (const task of part.processes) options.executor.end(task, ending, detail);
    },

    ended: (task) => {
      const part = partOf.get(task);
      partOf.delete(task);
      part?.processes.delete(task);
      return part;
    },

    cleanUp: (part) => {
      if (part.hostFile !== undefined) rmSync(part.hostFile, { force: true });
      part.hostFile = undefined;
    },
  };
};
