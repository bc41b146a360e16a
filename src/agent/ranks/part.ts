import type { Peak } from "../../core/peak.ts";
import type { Used } from "../../core/usage.ts";
import type { Ranks } from "../../protocol/messages.ts";
import type { TaskOutput } from "../output/stream.ts";
import type { Slot } from "../slots.ts";
import type { AgentTask } from "../task.ts";
import type { RunTemplate } from "../templates.ts";
import { newPart, type PartState } from "./part-states.ts";

/** This agent's part of a task whose ranks run on several agents. */
export interface Part {
  readonly message: Ranks;
  readonly run: RunTemplate;
  /** On the first node: it owns the attempt. */
  readonly head: boolean;
  state: PartState;
  slots: readonly Slot[];
  /** Processes that have not ended. */
  readonly processes: Set<AgentTask>;
  /** What its ranks write together. */
  readonly output: { current: TaskOutput | undefined };
  /** What the monotonic clock said. */
  started: number;
  finished: number;
  /** The largest of its ranks that have ended. */
  peak: Peak | undefined;
  /** What all of them used, where it was measured. */
  used: Used | undefined;
  /** The file of hosts that a launcher reads. */
  hostFile: string | undefined;
  /** The tail of output that the server knows of, -2 before the first report. */
  reported: number;
}

export const createPart = (message: Ranks, run: RunTemplate): Part => {
  const head = message.node === 0;
  // where a launcher starts all ranks, only the launcher knows how they end
  const othersDone = !head || message.hosts.length === 1 || message.by !== "agents";
  return {
    message,
    run,
    head,
    state: newPart(othersDone),
    slots: [],
    processes: new Set(),
    output: { current: undefined },
    started: 0,
    finished: 0,
    peak: undefined,
    used: undefined,
    hostFile: undefined,
    reported: -2,
  };
};
