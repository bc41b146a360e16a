import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ending, NO_CODE } from "../core/events.ts";
import { shapeKey } from "../core/resources.ts";
import type { AgentMessage, AttemptName, Progress, Ranks, RanksDone, RanksEndedMessage } from "../protocol/messages.ts";
import type { AssignedTasks } from "./assigned-tasks.ts";
import type { Executor } from "./executor.ts";
import type { NodeClock } from "./node-clock.ts";
import type { OutputStream, TaskOutput } from "./output/stream.ts";
import type { Result } from "./results.ts";
import { firstRanks, hostFile, rankEnvironment, rankLaunch } from "./rank-places.ts";
import type { Slot, SlotPool } from "./slots.ts";
import type { AgentTask, RankOfTask } from "./task.ts";
import type { RunTemplate } from "./templates.ts";

/**
 * This agent's parts of tasks whose ranks run on several agents. A part takes slots for all its ranks at once, before
 * anything else is started here. On the first node the part has the attempt: its result is told when its own ranks
 * have ended and the others are known to be done, or as soon as one of all has failed. Elsewhere the end of the ranks
 * is told to the server, again and again until it is on disk, and the slots are kept until the attempt is over.
 *
 *     waits for slots ──► runs ──► own ranks ended ──► (first node) others done ──► result
 *                           │                      └─► (others) told ──► over
 *                           └─ a rank fails, here or elsewhere: all are ended, the first failure is the task's
 */

interface Outcome {
  readonly ending: number;
  readonly code: number;
  readonly detail: string;
}

interface Part {
  readonly message: Ranks;
  readonly run: RunTemplate;
  readonly head: boolean;
  readonly output: { current: TaskOutput | undefined };
  slots: Slot[];
  /** Processes that have not ended. */
  readonly live: Set<AgentTask>;
  begun: boolean;
  /** What the monotonic clock said. */
  started: number;
  finished: number;
  /** The first failure, here or elsewhere. */
  failure: Outcome | undefined;
  /** The other agents' ranks are done. */
  othersDone: boolean;
  /** Its end was told, or must not be told any more. */
  settled: boolean;
  /** Of a part that is not the head's: what the server must know. */
  told: RanksEndedMessage | undefined;
  /** And it is on the server's disk. */
  heard: boolean;
  over: boolean;
  hosts: string | undefined;
  reported: number;
}

export interface RankParts {
  readonly size: number;
  /** Parts that wait for slots: nothing else is started before. */
  readonly waiting: boolean;
  take(message: Ranks, run: RunTemplate): void;
  /** Starts what has its slots now. */
  pump(): void;
  /** A process of a part has ended. */
  rankEnded(task: AgentTask, result: Result): void;
  othersDone(message: RanksDone): void;
  kept(run: number, row: number, attempt: number): void;
  over(run: number, row: number, attempt: number): void;
  /** Ends an attempt of this agent's; false if it has none. */
  stop(run: number, row: number, attempt: number, dropped: boolean): boolean;
  /** Gives back what has not begun; `now` ends what runs, at no cost to it. */
  drain(now: boolean, reason: string, ending?: number): void;
  /** Attempts of this agent's, and those of others of which it has a part. */
  own(): readonly AttemptName[];
  others(): readonly AttemptName[];
  /** To be said again after a connection was lost. */
  unheard(): readonly RanksEndedMessage[];
  progress(): Progress["tasks"][number][];
  progressOfOthers(): NonNullable<Progress["parts"]>[number][];
}

export interface RankPartsOptions {
  readonly uuid: string;
  readonly scratch: string;
  readonly pool: SlotPool;
  readonly output: OutputStream;
  readonly clock: NodeClock;
  readonly executor: () => Executor;
  readonly make: AssignedTasks["make"];
  readonly send: (message: AgentMessage) => void;
  readonly result: (result: Result) => void;
  /** Slots became free, or nothing is left here. */
  readonly changed: () => void;
}

/** By attempt: an attempt that is over may still be here when the next one comes. */
const keyOf = (run: number, row: number, attempt: number): string => `${run}.${row}.${attempt}`;
const keyOfPart = ({ message: { run, row, attempt } }: Part): string => keyOf(run, row, attempt);

const namesOf = (parts: readonly Part[]): AttemptName[] =>
  parts.map(({ message: { run, row, attempt } }) => ({ run, row, attempt }));

export const createRankParts = (options: RankPartsOptions): RankParts => {
  const { pool, output, clock } = options;
  const parts = new Map<string, Part>();
  const byTask = new Map<AgentTask, Part>();
  const waiting = new Set<Part>();

  const find = (run: number, row: number, attempt: number): Part | undefined => parts.get(keyOf(run, row, attempt));

  const free = (part: Part): void => {
    for (const slot of part.slots) pool.release(slot);
    part.slots = [];
    waiting.delete(part);
    // of one that nobody reports any more, too: what waits in memory goes
    if (part.output.current !== undefined) output.end(part.output.current);
    if (part.hosts !== undefined) rmSync(part.hosts, { force: true });
    part.hosts = undefined;
  };

  const remove = (part: Part): void => {
    parts.delete(keyOfPart(part));
    free(part);
    options.changed();
  };

  const endAll = (part: Part, ending: number, detail: string): void => {
    for (const task of part.live) options.executor().end(task, ending, detail);
  };

  const fail = (part: Part, outcome: Outcome): void => {
    part.failure ??= outcome;
    endAll(part, Ending.CANCELED, "another rank ended");
  };

  /** Tells how the part ended, once everything that must be known is. */
  const settle = (part: Part): void => {
    const { message, failure } = part;
    // ranks that wait for slots are not done, though none of them runs
    const isDone = part.begun && (!part.head || part.othersDone);
    if (part.settled || part.live.size > 0 || (failure === undefined && !isDone)) return;
    part.settled = true;
    waiting.delete(part);
    const ended = part.output.current === undefined ? undefined : output.end(part.output.current);
    const { ending, code, detail } = failure ?? { ending: Ending.EXIT, code: 0, detail: "" };
    const { run, row, attempt } = message;
    const tell = (): void => {
      const out = { outAt: ended?.lastAt ?? -1, outBytes: ended?.stdoutBytes ?? 0, errBytes: ended?.stderrBytes ?? 0 };
      const lost = ended?.lost ?? undefined;
      if (part.head) {
        const started = clock.at(part.started);
        const finished = Math.max(started, part.finished);
        options.result({
          run,
          row,
          attempt,
          ending,
          code,
          started,
          finished,
          ...out,
          lost,
          detail: detail === "" ? undefined : detail,
        });
        remove(part);
        return;
      }
      part.told = { t: "ranks-ended", run, row, attempt, ending, code, detail, ...out, ...(lost && { lost }) };
      options.send(part.told);
    };
    // nothing is told before the output can be read
    if (ended === undefined || ended.flushed === null) tell();
    else void ended.flushed.then(tell);
  };

  const rankTask = (part: Part, slot: Slot, rank: RankOfTask): AgentTask => {
    const { message } = part;
    const task = options.make({
      shape: shapeKey(message.resources),
      priority: 0,
      run: part.run,
      group: message.group,
      row: message.row,
      attempt: message.attempt,
      item: message.item,
      resources: message.resources,
      alone: message.alone === true,
      rank,
    });
    task.chain = { slot, shape: task.shape, members: [task] };
    part.live.add(task);
    byTask.set(task, part);
    return task;
  };

  /** One process that starts all ranks, in the first slot of the first node; the other slots are kept for them. */
  const startLauncher = (part: Part): void => {
    const { message } = part;
    const { run, row, attempt } = message;
    part.hosts = join(options.scratch, `slipway-hosts-${options.uuid.slice(0, 8)}-${run}.${row}.${attempt}`);
    writeFileSync(part.hosts, hostFile(message));
    const { argv, env } = rankLaunch(message, part.hosts, process.env, part.run.env);
    const rank = { number: 0, env, launcher: argv, output: part.output };
    options.executor().start(rankTask(part, part.slots[0]!, rank), undefined);
  };

  const begin = (part: Part): void => {
    const { message } = part;
    part.begun = true;
    part.started = performance.now();
    part.finished = clock.at(part.started);
    const nothingToStart = part.run.groups.get(message.group)!.source.executor === "null";
    if (nothingToStart) return settle(part);
    if (message.by !== "agents") {
      if (part.head) startLauncher(part);
      // the others hold their slots until the attempt is over
      return;
    }
    const first = firstRanks(message.ranks)[message.node]!;
    const tasks = part.slots.map((slot, local) =>
      rankTask(part, slot, {
        number: first + local,
        env: rankEnvironment(message, local),
        launcher: [],
        output: part.output,
      }),
    );
    for (const task of tasks) options.executor().start(task, undefined);
  };

  const takeSlots = (part: Part): boolean => {
    const slots: Slot[] = [];
    for (let i = 0; i < part.message.ranks[part.message.node]!; i += 1) {
      const slot = pool.allocate(part.message.resources);
      if (slot === undefined) {
        for (const taken of slots) pool.release(taken);
        return false;
      }
      slots.push(slot);
    }
    part.slots = slots;
    return true;
  };

  const interrupt = (part: Part, reason: string, ending: number): void => {
    part.failure ??= { ending, code: NO_CODE, detail: reason };
    endAll(part, ending, reason);
    settle(part);
  };

  const over = (part: Part): void => {
    if (part.over) return;
    part.over = true;
    if (part.head) {
      // superseded: whatever it still does is nobody's any more
      part.settled = true;
      endAll(part, Ending.CANCELED, "superseded");
      if (part.live.size === 0) remove(part);
      else parts.delete(keyOfPart(part));
      return;
    }
    part.failure ??= { ending: Ending.CANCELED, code: NO_CODE, detail: "the task is over" };
    if (part.live.size > 0) endAll(part, Ending.CANCELED, "the task is over");
    else if (!part.settled || part.heard) remove(part);
  };

  return {
    get size() {
      return parts.size;
    },
    get waiting() {
      return waiting.size > 0;
    },

    take: (message, run) => {
      if (find(message.run, message.row, message.attempt) !== undefined) return; // said twice
      for (const before of parts.values())
        if (before.message.run === message.run && before.message.row === message.row) over(before);
      const part: Part = {
        message,
        run,
        head: message.node === 0,
        output: { current: undefined },
        slots: [],
        live: new Set(),
        begun: false,
        started: 0,
        finished: 0,
        failure: undefined,
        // where a launcher starts all ranks, it alone knows how they end
        othersDone: message.hosts.length === 1 || message.by !== "agents",
        settled: false,
        told: undefined,
        heard: false,
        over: false,
        hosts: undefined,
        reported: -2,
      };
      parts.set(keyOfPart(part), part);
      waiting.add(part);
    },

    pump: () => {
      for (const part of waiting) {
        if (!takeSlots(part)) return;
        waiting.delete(part);
        begin(part);
      }
    },

    rankEnded: (task, result) => {
      const part = byTask.get(task);
      byTask.delete(task);
      if (part === undefined) return;
      part.live.delete(task);
      part.finished = Math.max(part.finished, result.finished);
      if (part.failure === undefined && (result.ending !== Ending.EXIT || result.code !== 0)) {
        const what =
          result.detail ?? (result.code < 0 ? `killed by signal ${-result.code}` : `exit code ${result.code}`);
        const where =
          task.rank!.launcher.length > 0
            ? ""
            : `rank ${task.rank!.number} on ${part.message.hosts[part.message.node]}: `;
        fail(part, { ending: result.ending, code: result.code, detail: `${where}${what}` });
      }
      settle(part);
      if (part.head && part.over && part.live.size === 0) remove(part);
    },

    othersDone: ({ run, row, attempt, ending, code, detail }) => {
      const part = find(run, row, attempt);
      if (part === undefined || part.settled) return;
      part.othersDone = true;
      if (ending !== Ending.EXIT || code !== 0) fail(part, { ending, code, detail });
      settle(part);
    },

    kept: (run, row, attempt) => {
      const part = find(run, row, attempt);
      if (part === undefined) return;
      part.heard = true;
      if (part.over) remove(part);
    },

    over: (run, row, attempt) => {
      const part = find(run, row, attempt);
      if (part !== undefined) over(part);
    },

    stop: (run, row, attempt, dropped) => {
      const part = find(run, row, attempt);
      if (part === undefined || !part.head) return false;
      if (dropped) {
        part.settled = true;
        part.over = true;
        parts.delete(keyOfPart(part));
      }
      if (!part.begun) {
        if (!dropped) options.send({ t: "returned", parts: [{ run, ranges: [row, 1] }] });
        remove(part);
        return true;
      }
      part.failure ??= { ending: Ending.CANCELED, code: NO_CODE, detail: "cancelled" };
      endAll(part, Ending.CANCELED, "cancelled");
      if (dropped && part.live.size === 0) remove(part);
      settle(part);
      return true;
    },

    drain: (now, reason, ending = Ending.INTERRUPTED) => {
      for (const part of parts.values()) {
        if (!part.begun && part.head) {
          const { run, row } = part.message;
          options.send({ t: "returned", parts: [{ run, ranges: [row, 1] }] });
          remove(part);
        } else if (now || !part.begun) interrupt(part, reason, ending);
      }
    },

    own: () => namesOf([...parts.values()].filter((part) => part.head)),

    others: () => namesOf([...parts.values()].filter((part) => !part.head)),

    unheard: () => [...parts.values()].flatMap(({ told, heard }) => (told === undefined || heard ? [] : [told])),

    progress: () =>
      [...parts.values()].flatMap((part) => {
        const tail = part.output.current === undefined ? -1 : output.tail(part.output.current);
        if (!part.head || !part.begun || part.settled || part.reported === tail) return [];
        part.reported = tail;
        const { run, row, attempt } = part.message;
        return [
          { run, row, attempt, started: clock.at(part.started), outAt: tail, kept: part.output.current?.taken ?? 0 },
        ];
      }),

    progressOfOthers: () =>
      [...parts.values()].flatMap((part) => {
        const tail = part.output.current === undefined ? -1 : output.tail(part.output.current);
        if (part.head || part.settled || tail < 0 || part.reported === tail) return [];
        part.reported = tail;
        const { run, row, attempt } = part.message;
        return [{ run, row, attempt, kept: part.output.current!.taken }];
      }),
  };
};
