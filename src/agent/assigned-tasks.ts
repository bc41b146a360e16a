import { shapeKey } from "../core/resources.ts";
import type { Assign, Behind, Singles } from "../protocol/messages.ts";
import type { AgentTask, TaskOwner } from "./task.ts";
import { type RunTemplate, shapeOf } from "./templates.ts";
import type { Row } from "../core/ids.ts";

type NewTask = Pick<
  AgentTask,
  "owner" | "shape" | "priority" | "run" | "group" | "row" | "attempt" | "item" | "resources" | "timeLimit" | "alone"
> & {
  readonly rank?: AgentTask["rank"];
  readonly followed?: boolean;
  readonly only?: boolean;
};

/** Turns what the server assigns into tasks, each with a number that is unique on this agent. */
export interface AssignedTasks {
  make(facts: NewTask): AgentTask;
  /** The tasks of an assignment, except those that `isHeld` knows: the server sent them twice. */
  of(message: Assign, run: RunTemplate, owner: TaskOwner, isHeld: (row: Row) => boolean): Generator<AgentTask>;
  /** The same of single tasks, each with what it lies behind. */
  singles(
    message: Singles,
    run: RunTemplate,
    owner: TaskOwner,
    isHeld: (row: Row) => boolean,
  ): Generator<readonly [AgentTask, Behind | undefined]>;
}

/** The spawner's numbers have 32 bits. */
const LAST_ID = 0xffff_fff0;

export const createAssignedTasks = (): AssignedTasks => {
  let nextId = 1;

  const make = (facts: NewTask): AgentTask => {
    const id = nextId;
    nextId = nextId === LAST_ID ? 1 : nextId + 1;
    const { owner, shape, priority, run, group, row, attempt, item, resources, timeLimit, alone, rank } = facts;
    return {
      id,
      owner,
      shape,
      priority,
      run,
      group,
      row,
      attempt,
      item,
      resources,
      timeLimit,
      alone,
      rank,
      followed: facts.followed ?? false,
      only: facts.only ?? false,
      follower: undefined,
      before: undefined,
      place: undefined,
      chain: undefined,
      output: undefined,
      pid: 0,
      started: 0,
      ending: undefined,
      detail: undefined,
      warned: false,
      dropped: false,
      limit: undefined,
      reported: -2,
    };
  };

  return {
    make,
    *of(message, run, owner, isHeld) {
      const group = run.groups.get(message.group)!;
      const { source } = group;
      const shape = shapeOf(group);
      const alone = new Set(message.alone);
      // what was handed ahead may get something behind it at any time
      const followed = message.followed === true || message.behind !== undefined;
      const only = message.behind?.only === true;
      let nth = 0;
      for (let i = 0; i < message.ranges.length; i += 2) {
        for (let row = message.ranges[i]!, end = row + message.ranges[i + 1]!; row < end; row += 1, nth += 1) {
          if (isHeld(row)) continue;
          const resources = message.resources?.[nth];
          const own = resources === undefined ? shape : shapeKey(resources);
          yield make({
            owner,
            // a shape of its own: nothing waits behind it in its slot
            shape: alone.has(row) ? `${own} alone` : own,
            priority: source.priority,
            run,
            group: message.group,
            row,
            attempt: typeof message.attempts === "number" ? message.attempts : message.attempts[nth]!,
            item: message.items?.[nth],
            resources: resources ?? source.resources,
            timeLimit: message.timeLimits === undefined ? source.timeLimit : (message.timeLimits[nth] ?? undefined),
            alone: alone.has(row),
            followed,
            only,
          });
        }
      }
    },
    *singles(message, run, owner, isHeld) {
      const { groups, rows, attempts, behind } = message;
      for (let i = 0; i < rows.length; i += 1) {
        const row = rows[i]!;
        if (isHeld(row)) continue;
        const group = run.groups.get(groups[i]!)!;
        const { priority, resources, timeLimit } = group.source;
        const attempt = typeof attempts === "number" ? attempts : attempts[i]!;
        const shape = shapeOf(group);
        const lies = behind?.[i] ?? undefined;
        const task = make({
          owner,
          shape,
          priority,
          run,
          group: groups[i]!,
          row,
          attempt,
          item: undefined,
          resources,
          timeLimit,
          alone: false,
          followed: message.followed === true || lies !== undefined,
          only: lies?.only === true,
        });
        yield [task, lies];
      }
    },
  };
};
