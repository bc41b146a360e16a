import type { Progress } from "../protocol/messages.ts";
import type { NodeClock } from "./node-clock.ts";
import type { OutputStream } from "./output/stream.ts";
import type { AgentTask } from "./task.ts";

/** What the server does not know yet of running tasks: that they began, and how far their output has come. */
export const progressOf = (
  running: Iterable<AgentTask>,
  output: OutputStream,
  clock: NodeClock,
): Progress["tasks"][number][] => {
  const tasks: Progress["tasks"][number][] = [];
  for (const task of running) {
    const tail = task.output === undefined ? -1 : output.tail(task.output);
    if (task.reported === tail || task.started === 0) continue;
    task.reported = tail;
    tasks.push({
      run: task.run.id,
      row: task.row,
      attempt: task.attempt,
      started: clock.at(task.started),
      outAt: tail,
      kept: task.output?.taken ?? 0,
    });
  }
  return tasks;
};

/** Reports them again, to a server that may not have heard of them. */
export const forgetProgress = (running: Iterable<AgentTask>): void => {
  for (const task of running) task.reported = -2;
};
