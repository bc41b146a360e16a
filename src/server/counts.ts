import { Task } from "../core/states.ts";
import type { Event, RowRanges } from "../core/events.ts";
import { type Run, runState } from "../core/run.ts";
import type { Row } from "../core/ids.ts";
import { stateOf } from "../core/table.ts";
import { type CommandTold, commandsTold } from "../managers/commands.ts";
import { type Family, createCounter, createHistogram } from "../metrics/families.ts";
import type { JournalIo } from "../journal/index.ts";

/** What is counted as it happens, since this server started: an addition each, whether or not somebody reads it. */
export interface Counts {
  readonly families: readonly Family[];
  /** By state, as in TASK_STATES. */
  readonly ended: Float64Array;
  taskEnded(run: Run, row: Row): void;
  tasksCanceled(count: number): void;
  tasksSkipped(count: number): void;
  attemptOver(lost: boolean): void;
  runFinished(run: Run): void;
  committed(event: Event): void;
  placed(parts: readonly RowRanges[], seconds: number): void;
  /** The same, with every wait for the disk counted. */
  timed(io: JournalIo): JournalIo;
  close(): void;
}

const PLACING = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const SYNCING = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const COMMANDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const ENDS = { [Task.DONE]: "done", [Task.FAILED]: "failed", [Task.CANCELED]: "cancelled" } as const;

const rowsIn = (parts: readonly RowRanges[]): number => {
  let sum = 0;
  for (const { ranges } of parts) for (let i = 1; i < ranges.length; i += 2) sum += ranges[i]!;
  return sum;
};

export const createCounts = (): Counts => {
  const ended = new Float64Array(Task.FAILED + 1);
  const endedTasks: Family = {
    name: "slipway_tasks_ended_total",
    help: "Tasks that have ended since this server started.",
    type: "counter",
    lines: () =>
      Object.entries(ENDS).map(([code, state]) => `slipway_tasks_ended_total{state="${state}"} ${ended[Number(code)]}`),
  };
  const attempts = createCounter(
    "slipway_attempts_repeated_total",
    "Attempts after which a task ran again: it failed, or was lost with its agent.",
    ["why"],
  );
  const skipped = createCounter(
    "slipway_tasks_skipped_total",
    "Tasks that did not need to run, because their outputs were up to date.",
  );
  skipped.add(0);
  const runs = createCounter("slipway_runs_ended_total", "Runs that have ended since this server started.", ["state"]);
  const submitted = createCounter("slipway_runs_submitted_total", "Runs that were submitted to this server.");
  const placing = createHistogram(
    "slipway_placement_seconds",
    "Time from a change (tasks became ready, a slot became free) to tasks on their way to an agent, the wait for the disk included; counted by task.",
    PLACING,
  );
  const syncing = createHistogram(
    "slipway_journal_fsync_seconds",
    "How long the disk took to keep the journal.",
    SYNCING,
  );
  const commands = createHistogram(
    "slipway_manager_command_seconds",
    "How long commands of workload managers took.",
    COMMANDS,
    ["program"],
  );
  const failures = createCounter(
    "slipway_manager_command_failures_total",
    "Commands of workload managers that failed.",
    ["program", "why"],
  );
  const pilots = createCounter("slipway_pilots_ended_total", "Pilots that have ended since this server started.", [
    "state",
  ]);
  for (const why of ["failed", "lost"]) attempts.add(0, why);
  for (const state of ["done", "failed", "cancelled"]) {
    runs.add(0, state);
    pilots.add(0, state);
  }

  const onCommand = (message: unknown): void => {
    const { program, ms, failure } = message as CommandTold;
    commands.observe(ms / 1000, 1, program);
    if (failure !== undefined) failures.add(1, program, failure);
  };
  commandsTold.subscribe(onCommand);

  return {
    families: [endedTasks, skipped, attempts, submitted, runs, placing, syncing, commands, failures, pilots],
    ended,
    taskEnded: (run, row) => {
      ended[stateOf(run.table, row)]! += 1;
    },
    tasksCanceled: (count) => {
      ended[Task.CANCELED]! += count;
    },
    tasksSkipped: (count) => skipped.add(count),
    attemptOver: (lost) => attempts.add(1, lost ? "lost" : "failed"),
    runFinished: (run) => {
      const state = runState(run);
      runs.add(1, state === "CANCELED" ? "cancelled" : state.toLowerCase());
    },
    committed: (event) => {
      if (event.type === "run.committed") submitted.add(1);
      else if (event.type === "pilot.changed") {
        const word = { DONE: "done", FAILED: "failed", CANCELED: "cancelled" }[event.state as string];
        if (word !== undefined) pilots.add(1, word);
      }
    },
    placed: (parts, seconds) => placing.observe(seconds, rowsIn(parts)),
    timed: (io) => ({
      ...io,
      open: async (path, flags) => {
        const file = await io.open(path, flags);
        return {
          ...file,
          datasync: async () => {
            const since = performance.now();
            await file.datasync();
            syncing.observe((performance.now() - since) / 1000);
          },
        };
      },
    }),
    close: () => void commandsTold.unsubscribe(onCommand),
  };
};
