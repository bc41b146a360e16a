import { Ending } from "../../core/events.ts";
import { largerPeak } from "../../core/peak.ts";
import { type Usage, addUsed, usageOf } from "../../core/usage.ts";
import type { AgentMessage, AttemptName } from "../../protocol/messages.ts";
import type { NodeClock } from "../node-clock.ts";
import type { EndedOutput, OutputStream } from "../output/stream.ts";
import type { Result } from "../results.ts";
import type { SlotLine } from "../slot-line.ts";
import type { Slot, SlotPool } from "../slots.ts";
import type { AgentTask, TaskOwner } from "../task.ts";
import type { Part } from "./part.ts";
import { declaredOutputs, missingOutput, withoutOutput } from "../outputs.ts";
import { endedWell, movePart, type Outcome, type PartEvent, TASK_IS_OVER } from "./part-states.ts";
import { createRankProcesses, failureOf, neverBegan, type RankProcessesOptions } from "./processes.ts";

/** What happens to parts, and what follows from their new states, which part-states.ts decides. */
export interface PartActions {
  /** It has its slots. */
  begin(part: Part, slots: readonly Slot[]): void;
  /** The ranks of other agents are done; all went well, or one failed. */
  othersDone(part: Part, failure: Outcome | undefined): void;
  /** What it reported is on the server's disk. */
  kept(part: Part): void;
  over(part: Part): void;
  stop(part: Part, outcome: Outcome): void;
  /** To the server, before it began. */
  giveBack(part: Part): void;
}

export interface PartActionsOptions extends RankProcessesOptions {
  readonly pool: SlotPool;
  readonly line: SlotLine;
  readonly output: OutputStream;
  readonly clock: NodeClock;
  readonly send: (message: AgentMessage) => void;
  readonly result: (result: Result) => void;
  /** Nothing of a part is left, and its slots are free. */
  readonly gone: () => void;
}

/** The parts that are here, and those of them that wait for slots. */
export interface PartSets {
  readonly parts: Map<string, Part>;
  readonly waiting: Set<Part>;
}

/** How long to look for an output that a rank may have written on another node. */
const ELSEWHERE_MS = 5000;

/** By attempt: an attempt that is over may still be here when the next one comes. */
export const keyOf = ({ run, row, attempt }: AttemptName): string => `${run}.${row}.${attempt}`;

export const nameOf = ({ message: { run, row, attempt } }: Part): AttemptName => ({ run, row, attempt });

/** What its ranks used, where it was measured. */
const usedOf = ({ used }: Part): Partial<Usage> => (used === undefined ? {} : (usageOf(used) ?? {}));

const factsOf = (part: Part, { ending, code }: Outcome, ended: EndedOutput | undefined) => ({
  ...nameOf(part),
  ending,
  code,
  outAt: ended?.lastAt ?? -1,
  outBytes: ended?.stdoutBytes ?? 0,
  errBytes: ended?.stderrBytes ?? 0,
  ...(ended?.lost && { lost: ended.lost }),
  ...(part.peak && { peak: part.peak }),
});

export const createPartActions = (options: PartActionsOptions, { parts, waiting }: PartSets): PartActions => {
  const { pool, output, clock } = options;
  const processes = createRankProcesses(options);

  const endOutput = (part: Part): EndedOutput | undefined => {
    const { current } = part.output;
    part.output.current = undefined;
    return current === undefined ? undefined : output.end(current);
  };

  /** Reports the result, or says what to report of the ranks here. */
  const report = (part: Part, outcome: Outcome, ended: EndedOutput | undefined): PartEvent => {
    const facts = factsOf(part, outcome, ended);
    if (!part.head)
      return { type: "told", message: { t: "ranks-ended", ...facts, detail: outcome.detail, ...usedOf(part) } };
    const started = clock.at(part.started);
    const finished = Math.max(started, part.finished);
    options.result({ ...facts, started, finished, used: part.used, detail: outcome.detail || undefined });
    return { type: "reported" };
  };

  const remove = (part: Part): void => {
    // another attempt may have taken its place
    if (parts.get(keyOf(part.message)) === part) parts.delete(keyOf(part.message));
    for (const slot of part.slots) pool.release(slot);
    part.slots = [];
    // even if nobody reports it any more: frees what waits in memory
    endOutput(part);
    processes.cleanUp(part);
    options.gone();
    options.line.serve();
  };

  const move = (part: Part, event: PartEvent): void => {
    const before = part.state;
    const state = movePart(before, event, { head: part.head, live: part.processes.size });
    part.state = state;
    if (state.is === before.is) return;
    waiting.delete(part);
    if (state.is === "writing") {
      const ended = endOutput(part);
      const tell = (missing?: string): void => {
        // unless it was superseded meanwhile: then nobody asks any more
        if (part.state.is !== "writing") return;
        move(part, report(part, missing === undefined ? state.outcome : withoutOutput(missing), ended));
      };
      const { run, message } = part;
      const outputs =
        part.head && endedWell(state.outcome) ? declaredOutputs(run, message.group, message.row, message.item) : [];
      const checked = (): void => {
        if (outputs.length === 0) tell();
        else void missingOutput(outputs, ELSEWHERE_MS).then(tell);
      };
      if (ended === undefined || ended.flushed === null) checked();
      else void ended.flushed.then(checked);
    } else if (state.is === "telling") options.send(state.message);
    // another attempt may take its place before its processes have ended
    else if (state.is === "leaving") parts.delete(keyOf(part.message));
    else if (state.is === "gone") remove(part);
  };

  /** A rank failed, here or elsewhere: none can continue. */
  const endOthers = (part: Part): void => processes.end(part, Ending.CANCELED, "another rank ended");

  const rankEnded = (task: AgentTask, result: Result): void => {
    const part = processes.ended(task);
    if (part === undefined) return;
    part.finished = Math.max(part.finished, result.finished);
    part.peak = largerPeak(part.peak, result.peak);
    part.used = addUsed(part.used, result.used);
    const failure = failureOf(task, part, result);
    move(part, { type: "rank-ended", failure });
    if (failure !== undefined) endOthers(part);
  };

  const owner: TaskOwner = {
    ended: rankEnded,
    dropped: (task) => rankEnded(task, neverBegan(task, clock.now())),
  };

  const begin = (part: Part, slots: readonly Slot[]): void => {
    part.slots = slots;
    part.started = performance.now();
    part.finished = clock.at(part.started);
    const nothingToStart = part.run.groups.get(part.message.group)!.source.executor === "null";
    const tasks = nothingToStart ? [] : processes.make(part, owner);
    move(part, { type: "begun", holds: tasks.length === 0 && !nothingToStart });
    processes.start(tasks);
  };

  const over = (part: Part): void => {
    move(part, { type: "over" });
    processes.end(part, Ending.CANCELED, part.head ? "superseded" : TASK_IS_OVER.detail);
  };

  const stop = (part: Part, outcome: Outcome): void => {
    move(part, { type: "stopped", outcome });
    processes.end(part, outcome.ending, outcome.detail);
  };

  const giveBack = (part: Part): void => {
    const { run, row } = part.message;
    options.send({ t: "returned", parts: [{ run, ranges: [row, 1] }] });
    move(part, { type: "returned" });
  };

  return {
    begin,
    othersDone: (part, failure) => {
      move(part, { type: "others-done", failure });
      if (failure !== undefined) endOthers(part);
    },
    kept: (part) => move(part, { type: "kept" }),
    over,
    stop,
    giveBack,
  };
};
