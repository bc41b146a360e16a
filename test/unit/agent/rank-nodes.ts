import { createAssignedTasks } from "../../../src/agent/assigned-tasks.ts";
import type { Executor } from "../../../src/agent/executor.ts";
import { createNodeClock } from "../../../src/agent/node-clock.ts";
import type { EndedOutput, OutputStream, TaskOutput } from "../../../src/agent/output/stream.ts";
import { type RankParts, createRankParts } from "../../../src/agent/ranks/parts.ts";
import type { Result } from "../../../src/agent/results.ts";
import { createSlotLine } from "../../../src/agent/slot-line.ts";
import { SlotPool } from "../../../src/agent/slots.ts";
import type { AgentTask } from "../../../src/agent/task.ts";
import { defineRun } from "../../../src/agent/templates.ts";
import { Ending, NO_CODE } from "../../../src/core/events.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import type { AgentMessage, GroupTemplate } from "../../../src/protocol/messages.ts";

/** Agents with parts of one task of four ranks on two nodes, whose processes end when a test says so. */

export const RANKS = [2, 2];
export const NAME = { run: 1, row: 0, attempt: 1 };
export const RESOURCES = { cpus: FRACTION };
const GROUP = { index: 0, command: ["true"], env: {}, executor: "process", resources: RESOURCES, priority: 0 };
export const RUN = defineRun(undefined, {
  t: "define",
  run: 1,
  runName: "r",
  cwd: "/",
  env: {},
  numbering: { start: 0, step: 1 },
  groups: [GROUP as unknown as GroupTemplate],
} as Parameters<typeof defineRun>[1]);

export interface RankNode {
  readonly parts: RankParts;
  readonly pool: SlotPool;
  /** Attempts that it received. */
  readonly taken: number[];
  readonly started: AgentTask[];
  readonly live: Map<AgentTask, { ending: number; code: number }>;
  readonly sent: AgentMessage[];
  readonly results: Result[];
  /** Outputs that have begun and not ended; `flushes` says of ended ones that they are in the file. */
  readonly outputs: Set<TaskOutput>;
  readonly flushes: (() => void)[];
}

export const startNode = (): RankNode => {
  const pool = new SlotPool({ capacity: { cpus: 2 * FRACTION }, cpus: [0, 1], gpus: [] });
  const started: AgentTask[] = [];
  const live: RankNode["live"] = new Map();
  const sent: AgentMessage[] = [];
  const results: Result[] = [];
  const outputs = new Set<TaskOutput>();
  const flushes: (() => void)[] = [];
  const output = {
    tail: () => -1,
    end: (ended: TaskOutput): EndedOutput => {
      if (!outputs.delete(ended)) throw new Error("an output was ended twice");
      // oxlint-disable-next-line unicorn/no-thenable -- a promise that settles when a test says so, at once
      const flushed = { then: (settled: () => void) => void flushes.push(settled) };
      return { ...ended, lastAt: 7, stdoutBytes: 1, flushed: flushed as unknown as Promise<void> };
    },
  } as unknown as OutputStream;
  const executor = {
    start: (task: AgentTask) => {
      started.push(task);
      live.set(task, { ending: Ending.EXIT, code: 0 });
    },
    end: (task: AgentTask, ending: number) => {
      // the first ending counts
      if (live.get(task)?.ending === Ending.EXIT) live.set(task, { ending, code: NO_CODE });
    },
  } as unknown as Executor;
  const line = createSlotLine();
  const parts = createRankParts({
    uuid: "0123456789",
    scratch: "/nowhere",
    pool,
    output,
    clock: createNodeClock(),
    line,
    executor,
    make: createAssignedTasks().make,
    own: undefined,
    send: (message) => sent.push(message),
    result: (result) => results.push(result),
    gone: () => undefined,
  });
  line.join(parts);
  return { parts, pool, taken: [], started, live, sent, results, outputs, flushes };
};

export const take = ({ parts, taken }: RankNode, node: number, attempt = NAME.attempt): void => {
  taken.push(attempt);
  parts.take(
    {
      t: "ranks",
      ...NAME,
      attempt,
      group: 0,
      item: undefined,
      resources: RESOURCES,
      node,
      hosts: ["a", "b"],
      ranks: RANKS,
      by: "agents",
    },
    RUN,
  );
};

/** `own`: how it ended by itself. */
export const endRank = ({ live }: RankNode, task: AgentTask, own?: Pick<Result, "ending" | "code" | "peak">): void => {
  const outcome = own ?? live.get(task)!;
  live.delete(task);
  task.owner.ended(task, { ...NAME, started: 0, finished: 1, outAt: -1, outBytes: 0, errBytes: 0, ...outcome });
};

/** A rank writes something. */
export const write = ({ outputs }: RankNode, { rank }: AgentTask): void => {
  rank!.output.current ??= { stderrBytes: 0, taken: 0, lost: null } as unknown as TaskOutput;
  outputs.add(rank!.output.current);
};
