import { constants } from "node:os";
import { Ending, NO_CODE } from "../core/events.ts";
import type { Peak } from "../core/peak.ts";
import type { Used } from "../core/usage.ts";
import { startTimer } from "../long-timer.ts";
import { makeDirectories } from "../protocol/make-directories.ts";
import { type ExitOutcome, exitOutcome, lossOutcome } from "./exit-outcome.ts";
import { createOomKills } from "./oom-kills.ts";
import { withMemoryEvidence } from "./out-of-memory.ts";
import { watchMemory } from "./memory-watch.ts";
import { type NodeClock, createExitTimes } from "./node-clock.ts";
import { nodeEnvironment } from "./node-environment.ts";
import { declaredOutputs, missingOutput, withoutOutput } from "./outputs.ts";
import { peakAtEnd } from "./peak.ts";
import type { OutputStream, TaskOutput } from "./output/stream.ts";
import type { Result } from "./results.ts";
import type { AgentSettings } from "../protocol/agent-settings.ts";
import { leaveSeat, type Seat, startCrew } from "./spawner/crew.ts";
import type { Exit, Spawner } from "./spawner/spawner.ts";
import { createStartRequests, type StartRequestsOptions } from "./start-requests.ts";
import { type AgentTask, memoryLimit, tokenOf } from "./task.ts";
import type { ExpandedTask } from "./templates.ts";
import type { RunId } from "../core/ids.ts";

/** Runs attempts as processes, and reports how they ended. */

export interface ExecutorOptions extends StartRequestsOptions {
  readonly settings: AgentSettings;
  readonly output: OutputStream;
  readonly clock: NodeClock;
  /** How many spawners tasks share. */
  readonly spawners: number;
  readonly nativePath: string;
  readonly nodeEntry: readonly string[];
  /** Where the kernel counts what it killed for memory in this agent's group. */
  readonly oomKillsFile: string | undefined;
  /** A spawner has started; it gets tasks when this has settled. */
  readonly onSpawner: (spawner: Spawner) => Promise<void>;
  readonly onEnd: (task: AgentTask, result: Result) => void;
  /** It was ended before it began: nothing of it ever ran. */
  readonly onDropped: (task: AgentTask) => void;
  /**
   * A shared spawner is gone, and its tasks are reported. This agent must take nothing new. May be called more than
   * once.
   */
  readonly onBroken: (reason: string) => void;
}

export interface Executor {
  readonly kind: "native" | "node";
  /** Starts it in its chain's slot: at once, or when the member before it has ended. */
  start(task: AgentTask, after: AgentTask | undefined): void;
  /** TERM, grace, KILL; the result will say `ending`. */
  end(task: AgentTask, ending: number, detail?: string): void;
  /**
   * The pilot is about to end: signals everything that runs. A task that then ends with anything but exit code 0 is
   * reported as interrupted; one that waits in a slot behind another never begins. `forGood`: there is no other pilot
   * to go on in, and it ends as it ends.
   */
  warn(signal: string, forGood?: boolean): void;
  forgetRun(run: RunId): void;
  close(): Promise<void>;
}

/** A task that a spawner runs. */
interface Live {
  readonly task: AgentTask;
  readonly expanded: ExpandedTask;
  readonly tmpdir: string;
  readonly seat: Seat;
}

/** Between TERM and KILL at the end of a pilot. */
const CUT_OFF_MS = 2000;

const mib = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)}M`;

/** TERM, grace, KILL for tasks that spawners run. */
const createEnder =
  (live: ReadonlyMap<number, Live>, graceMs: number) =>
  (task: AgentTask, ending: number, detail?: string): void => {
    const entry = live.get(task.id);
    if (entry === undefined || task.ending !== undefined) return;
    task.ending = ending;
    task.detail = detail;
    // at the pilot's end it has had its time since the signal
    entry.seat.spawner.end(task.id, ending === Ending.CUT_OFF ? Math.min(graceMs, CUT_OFF_MS) : graceMs);
  };

type End = ReturnType<typeof createEnder>;

const watchTasks = (uuid: string, live: ReadonlyMap<number, Live>, end: End) =>
  watchMemory<number>({
    *tasks() {
      for (const { task } of live.values())
        if (task.pid > 0)
          yield {
            id: task.id,
            pid: task.pid,
            token: tokenOf(uuid, task),
            limitBytes: memoryLimit(task),
            started: task.started,
          };
    },
    onExceeded(id, used) {
      const task = live.get(id)?.task;
      if (task === undefined || task.ending !== undefined) return;
      const limit = memoryLimit(task) ?? 0;
      end(task, Ending.MEMORY, `over its memory limit: used ${mib(used)} of mem ${mib(limit)}`);
    },
  });

/** The time limit counts from here, not from the request to the spawner. */
const startClock = (task: AgentTask, end: End): void => {
  task.started = performance.now();
  const seconds = task.timeLimit;
  if (seconds === undefined || task.ending !== undefined) return;
  const over = (): void => end(task, Ending.TIME_LIMIT, `over its time limit of ${seconds} s`);
  task.limit = startTimer(seconds * 1000, over);
};

const beginOutput = (output: OutputStream, { rank, run, row, attempt }: AgentTask): TaskOutput => {
  if (rank === undefined) return output.begin(run.id, row, attempt);
  return (rank.output.current ??= output.begin(run.id, row, attempt));
};

/** Reports an end, but not before its output can be read. */
const createReporter =
  (output: OutputStream, onEnd: ExecutorOptions["onEnd"]) =>
  (
    task: AgentTask,
    started: number,
    finished: number,
    { ending, code, detail }: ExitOutcome,
    peak?: Peak,
    used?: Used,
  ): void => {
    task.limit?.stop();
    // output that the ranks of a task share ends when all of them have
    const ended = task.output === undefined || task.rank !== undefined ? undefined : output.end(task.output);
    const report = (): void =>
      onEnd(task, {
        run: task.run.id,
        row: task.row,
        attempt: task.attempt,
        ending,
        code,
        detail,
        started,
        finished,
        outAt: ended?.lastAt ?? -1,
        outBytes: ended?.stdoutBytes ?? 0,
        errBytes: ended?.stderrBytes ?? 0,
        lost: ended?.lost,
        peak,
        used,
      });
    if (ended === undefined || ended.flushed === null) report();
    else void ended.flushed.then(report);
  };

const NONE: readonly string[] = [];

const isGoodEnd = ({ ending, code }: ExitOutcome): boolean => ending === Ending.EXIT && code === 0;

const outputsOf = ({ run, group, row, item }: AgentTask): readonly string[] => declaredOutputs(run, group, row, item);

export const createExecutor = async (options: ExecutorOptions): Promise<Executor> => {
  const { settings, output, clock } = options;
  const live = new Map<number, Live>();
  const timesOf = createExitTimes(clock);
  const requests = createStartRequests(options);
  const end = createEnder(live, settings.graceMs);
  const report = createReporter(output, options.onEnd);
  const memory = watchTasks(options.uuid, live, end);
  const oomKills = createOomKills({ file: options.oomKillsFile });
  makeDirectories(settings.scratch);

  const onStarted = (id: number, pid: number): void => {
    const task = live.get(id)?.task;
    if (task === undefined) return;
    task.pid = pid;
    startClock(task, end);
    memory.wake();
  };

  const onOutput = (id: number, fd: 1 | 2, chunk: Buffer): void => {
    const task = live.get(id)?.task;
    if (task === undefined) return;
    task.output ??= beginOutput(output, task);
    output.write(task.output, fd, chunk);
  };

  const onExit = (exit: Exit): void => {
    const entry = live.get(exit.id);
    if (entry === undefined) return;
    live.delete(exit.id);
    const { task, expanded, tmpdir, seat } = entry;
    leaveSeat(seat);
    if (exit.error?.stage === "dropped") {
      if (exit.error.code === "EPIPE") options.onBroken("it no longer takes requests");
      return options.onDropped(task);
    }
    const { started, finished } = timesOf(seat.spawner, exit);
    const peak = peakAtEnd(task, exit, memory.takePeak(task.id));
    const outcome = withMemoryEvidence(exitOutcome(task, expanded, tmpdir, exit), exit, {
      peak,
      limit: task.resources["mem"],
      pilotKill: oomKills.take,
    });
    const outputs = isGoodEnd(outcome) && task.rank === undefined ? outputsOf(task) : NONE;
    if (outputs.length === 0) return report(task, started, finished, outcome, peak, exit);
    void missingOutput(outputs).then((missing) =>
      report(task, started, finished, missing === undefined ? outcome : withoutOutput(missing), peak, exit),
    );
  };

  const onLost = (spawner: Spawner, reason: string): void => {
    const now = clock.now();
    const lost = [...live.values()].filter(({ seat }) => seat.spawner === spawner);
    for (const { task } of lost) {
      live.delete(task.id);
      const peak = peakAtEnd(task, undefined, memory.takePeak(task.id));
      report(task, task.started === 0 ? now : clock.at(task.started), now, lossOutcome(task, reason), peak);
    }
  };

  const crew = await startCrew(
    {
      nativePath: options.nativePath,
      nodeEntry: options.nodeEntry,
      kind: settings.spawner,
      shared: options.spawners,
      environment: nodeEnvironment(settings),
      onSpawner: options.onSpawner,
      drained: () => output.drained(),
    },
    { started: onStarted, output: onOutput, exit: onExit, lost: onLost, broken: options.onBroken },
  );

  const expand = (task: AgentTask): ExpandedTask | undefined => {
    try {
      return requests.expand(task);
    } catch (error) {
      const now = clock.now();
      const detail = `not started: ${(error as Error).message}`;
      report(task, now, now, { ending: Ending.NOT_STARTED, code: NO_CODE, detail });
      return undefined;
    }
  };

  return {
    kind: crew.kind,
    start: (task, after) => {
      const expanded = expand(task);
      if (expanded === undefined) return;
      const request = requests.make(task, expanded, after);
      const alone = task.alone ? `${task.run.id}.${task.row}.${task.attempt}` : undefined;
      const seat = crew.take(task.run, alone, after === undefined ? undefined : live.get(after.id)?.seat);
      live.set(task.id, { task, expanded, tmpdir: request.tmpdir, seat });
      seat.spawner.start(request);
    },
    end,
    warn: (signal, forGood = false) => {
      for (const { task, seat } of live.values()) {
        if (task.ending !== undefined) continue;
        if (task.pid === 0) end(task, Ending.INTERRUPTED, "its pilot is about to end");
        else {
          task.warned = !forGood;
          seat.spawner.signal(task.id, constants.signals[signal as NodeJS.Signals]);
        }
      }
    },
    forgetRun: crew.forgetRun,
    close: async () => {
      memory.stop();
      oomKills.stop();
      await crew.close();
    },
  };
};
