import { existsSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { Ending, NO_CODE } from "../core/events.ts";
import { startTimer } from "../long-timer.ts";
import { makeDirectories } from "../protocol/make-directories.ts";
import { taskEnvironment } from "./environment.ts";
import { type NodeClock, createExitTimes } from "./node-clock.ts";
import { nodeEnvironment } from "./node-environment.ts";
import type { Gpus } from "./gpus.ts";
import { watchMemory } from "./memory-watch.ts";
import type { OutputStream, TaskOutput } from "./output/stream.ts";
import type { Result } from "./results.ts";
import type { AgentSettings } from "../protocol/agent-settings.ts";
import { pinnableCpus } from "./slots.ts";
import { createLoneSpawners } from "./spawner/lone.ts";
import { type Exit, type Spawner, startSpawner } from "./spawner/spawner.ts";
import { type AgentTask, tokenOf } from "./task.ts";
import { type ExpandedTask, expandTask, indexOf } from "./templates.ts";

/** Runs attempts as processes: one place that knows how a task starts, what it is given, and how its end is told. */

export interface ExecutorOptions {
  readonly uuid: string;
  readonly settings: AgentSettings;
  readonly cgroup: string | null;
  readonly gpus: Gpus;
  /** Further variables of every task. */
  readonly environment: readonly string[];
  readonly output: OutputStream;
  readonly clock: NodeClock;
  readonly spawners: number;
  readonly nativePath: string;
  readonly nodeEntry: readonly string[];
  /** A spawner is there; it gets tasks when this has settled. */
  readonly onSpawner: (spawner: Spawner) => Promise<void>;
  readonly onEnd: (task: AgentTask, result: Result) => void;
  /** It was ended before it began: nothing of it ever ran. */
  readonly onDropped: (task: AgentTask) => void;
  /** A spawner that tasks share is gone; its tasks are reported. This agent must take nothing new. May be told more than once. */
  readonly onBroken: (reason: string) => void;
}

export interface Executor {
  readonly kind: "native" | "node";
  /** Begins it in its chain's slot: at once, or when the member before it has ended. */
  start(task: AgentTask, after: AgentTask | undefined): void;
  /** TERM, grace, KILL; the result will say `ending`. */
  end(task: AgentTask, ending: number, detail?: string): void;
  /**
   * The pilot is about to end: a signal to all that runs. What ends after it other than with exit code 0 is reported as
   * interrupted; what waits in a slot behind another never begins.
   */
  warn(signal: string): void;
  forgetRun(run: number): void;
  close(): Promise<void>;
}

/** Between TERM and KILL at the end of a pilot. */
const CUT_OFF_MS = 2000;

/** Spawners of the kind that runs in Node. */
const MOST_IN_NODE = 4;

/** Of those that have one task each. */
const MOST_ALONE = 16;

const STAGES: Readonly<Record<string, string>> = {
  cwd: "its directory",
  stdout: "its stdout file",
  stderr: "its stderr file",
  tmpdir: "its TMPDIR",
};

/** What a failed start means for a user. */
const explain = (
  task: ExpandedTask,
  error: NonNullable<Exit["error"]>,
  tmpdir: string,
): { code: number; detail: string } => {
  const what = { cwd: task.cwd, stdout: task.stdout, stderr: task.stderr, tmpdir }[error.stage as string];
  if (what !== undefined) {
    const absent = error.stage === "cwd" ? "does not exist" : "cannot be made (no such directory)";
    const why = error.code === "ENOENT" ? absent : `cannot be used (${error.code})`;
    return { code: NO_CODE, detail: `not started: ${STAGES[error.stage]} ${what} ${why}` };
  }
  if (error.stage === "exec" && error.code === "ENOENT")
    return { code: 127, detail: `exit code 127: command not found: ${task.argv[0]}` };
  if (error.stage === "exec" && error.code === "E2BIG")
    return { code: 126, detail: "its arguments and environment are larger than the system allows" };
  if (error.stage === "exec")
    return { code: 126, detail: `exit code 126: cannot be executed: ${task.argv[0]} (${error.code})` };
  return { code: NO_CODE, detail: `not started: the system refused a new process (${error.code})` };
};

/** Ranks that are started one by one write files of their own; a launcher stands before the command. */
const forRank = ({ rank }: AgentTask, task: ExpandedTask): ExpandedTask => {
  if (rank === undefined) return task;
  if (rank.launcher.length > 0) return { ...task, argv: [...rank.launcher, ...task.argv] };
  const own = (path: string | null): string | null => (path === null ? null : `${path}.${rank.number}`);
  return { ...task, stdout: own(task.stdout), stderr: own(task.stderr) };
};

/** How an attempt ended whose spawner did, not at our request. */
const endingWithout = ({ warned }: AgentTask): number => (warned ? Ending.INTERRUPTED : Ending.SPAWNER_LOST);

export const createExecutor = async (options: ExecutorOptions): Promise<Executor> => {
  const { settings, output, clock } = options;
  const timesOf = createExitTimes(clock);
  const tasks = new Map<number, { task: AgentTask; expanded: ExpandedTask; tmpdir: string; spawner: Spawner }>();
  const fromNode = nodeEnvironment(settings.environmentFile);
  makeDirectories(settings.scratch);
  let closing = false;

  const finish = (
    task: AgentTask,
    result: Omit<Result, "run" | "row" | "attempt" | "outAt" | "outBytes" | "errBytes" | "lost">,
  ): void => {
    task.limit?.stop();
    // what the ranks of a task write together ends when all of them have
    const ended = task.output === undefined || task.rank !== undefined ? undefined : output.end(task.output);
    const report = (): void =>
      options.onEnd(task, {
        run: task.run.id,
        row: task.row,
        attempt: task.attempt,
        ...result,
        outAt: ended?.lastAt ?? -1,
        outBytes: ended?.stdoutBytes ?? 0,
        errBytes: ended?.stderrBytes ?? 0,
        lost: ended?.lost,
      });
    // a result is not told before its output can be read
    if (ended === undefined || ended.flushed === null) report();
    else void ended.flushed.then(report);
  };

  const onExit = (exit: Exit): void => {
    const entry = tasks.get(exit.id);
    if (entry === undefined) return;
    tasks.delete(exit.id);
    const left = (live.get(entry.spawner) ?? 1) - 1;
    live.set(entry.spawner, left);
    const { task, expanded } = entry;
    if (task.alone && left === 0) lone.done(entry.spawner);
    if (exit.error?.stage === "dropped") {
      if (exit.error.code === "EPIPE") options.onBroken("it takes nothing any more");
      return options.onDropped(task);
    }
    const times = timesOf(entry.spawner, exit);
    // not at our request: then the spawner itself was told to end, with the pilot or by a task
    const { ending = endingWithout(task), detail = "its spawner was told to end" } = task;
    // one that was over by itself when we wanted to end it needs no other attempt; nor does one that ends well when its
    // pilot goes: exit code 0 is success, and whatever gives up early says so with another
    const endedWell = exit.code === 0 && ending >= Ending.INTERRUPTED;
    if (exit.ended && !endedWell) {
      const code = exit.code ?? (exit.signal === null ? NO_CODE : -exit.signal);
      return finish(task, { ...times, ending, code, detail });
    }
    if (task.warned && (exit.signal !== null || exit.code !== 0)) {
      const code = exit.code ?? (exit.signal === null ? NO_CODE : -exit.signal);
      return finish(task, { ...times, ending: Ending.INTERRUPTED, code, detail: "it ended at its pilot's signal" });
    }
    if (exit.error !== null) {
      const { code, detail } = explain(expanded, exit.error, entry.tmpdir);
      return finish(task, { ...times, ending: Ending.NOT_STARTED, code, detail });
    }
    if (exit.signal !== null) return finish(task, { ...times, ending: Ending.SIGNAL, code: -exit.signal });
    return finish(task, { ...times, ending: Ending.EXIT, code: exit.code ?? NO_CODE });
  };

  const memory = watchMemory<number>({
    *tasks() {
      for (const { task } of tasks.values())
        if (task.pid > 0 && task.resources["mem"] !== undefined)
          yield { id: task.id, pid: task.pid, token: tokenOf(options.uuid, task), limitBytes: task.resources["mem"] };
    },
    onExceeded(id, used) {
      const task = tasks.get(id)?.task;
      if (task === undefined || task.ending !== undefined) return;
      const limit = task.resources["mem"] ?? 0;
      const mib = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)}M`;
      end(task, Ending.MEMORY, `over its memory limit: used ${mib(used)} of mem ${mib(limit)}`);
    },
  });

  const beginOutput = (task: AgentTask): TaskOutput => {
    if (task.rank === undefined) return output.begin(task.run.id, task.row, task.attempt);
    task.rank.output.current ??= output.begin(task.run.id, task.row, task.attempt);
    return task.rank.output.current;
  };

  /** Tasks that write faster than the disk wait in their writes; nothing piles up here. */
  let slowed = false;
  const slowDown = (): void => {
    const drained = slowed ? null : output.drained();
    if (drained === null) return;
    slowed = true;
    for (const spawner of [...spawners, ...lone]) spawner.pause();
    void drained.then(() => {
      slowed = false;
      for (const spawner of [...spawners, ...lone]) spawner.resume();
    });
  };

  const launchSpawner = async (closed: (reason: string) => void): Promise<Spawner> => {
    const made = await startSpawner(
      { nativePath: options.nativePath, nodeEntry: options.nodeEntry, kind: settings.spawner },
      {
        started: (id, pid) => {
          const entry = tasks.get(id);
          if (entry === undefined) return;
          entry.task.pid = pid;
          began(entry.task);
          if (entry.task.resources["mem"] !== undefined) memory.wake();
        },
        output: (id, fd, chunk) => {
          const task = tasks.get(id)?.task;
          if (task === undefined) return;
          task.output ??= beginOutput(task);
          output.write(task.output, fd, chunk);
          slowDown();
        },
        exit: onExit,
        closed,
      },
    );
    await options.onSpawner(made);
    return made;
  };

  const makeSpawner = async (): Promise<Spawner> => {
    const made: Spawner = await launchSpawner((reason) => {
      if (closing) return;
      options.onBroken(reason);
      loseTasksOf(made, reason);
    });
    return made;
  };

  /** What ran in a spawner that is gone was ended with it; whose doing that was is not known here. */
  const loseTasksOf = (spawner: Spawner, reason: string): void => {
    const now = clock.now();
    const lost = [...tasks.values()].filter((entry) => entry.spawner === spawner);
    for (const { task } of lost) {
      tasks.delete(task.id);
      const started = task.started === 0 ? now : clock.at(task.started);
      const detail = task.detail ?? `its spawner ended: ${reason}`;
      const { ending = endingWithout(task) } = task;
      finish(task, { started, finished: now, ending, code: NO_CODE, detail });
    }
  };

  const first = await makeSpawner();
  // in Node each is a process of tens of megabytes
  const more = Math.min(options.spawners, first.kind === "node" ? MOST_IN_NODE : Infinity) - 1;
  const spawners = [first, ...(await Promise.all(Array.from({ length: more }, makeSpawner)))];
  const load = new Map<Spawner, Set<number>>(spawners.map((spawner) => [spawner, new Set()]));
  const live = new Map<Spawner, number>(spawners.map((spawner) => [spawner, 0]));
  const lone = createLoneSpawners({
    kind: first.kind,
    most: first.kind === "node" ? MOST_IN_NODE : MOST_ALONE,
    start: launchSpawner,
    exit: onExit,
    lost: (spawner, reason) => {
      load.delete(spawner);
      live.delete(spawner);
      if (!closing) loseTasksOf(spawner, reason);
    },
  });
  const leastBusy = (): Spawner => spawners.reduce((best, each) => (live.get(each)! < live.get(best)! ? each : best));

  const end = (task: AgentTask, ending: number, detail?: string): void => {
    const entry = tasks.get(task.id);
    if (entry === undefined || task.ending !== undefined) return;
    task.ending = ending;
    task.detail = detail;
    // at the pilot's end it had its time since the signal
    entry.spawner.end(task.id, ending === Ending.CUT_OFF ? Math.min(settings.graceMs, CUT_OFF_MS) : settings.graceMs);
  };

  /** Time counts from here, not from when the spawner was asked. */
  const began = (task: AgentTask): void => {
    task.started = performance.now();
    const seconds = task.run.groups.get(task.group)?.source.timeLimit;
    if (seconds === undefined || task.ending !== undefined) return;
    const over = (): void => end(task, Ending.TIME_LIMIT, `over its time limit of ${seconds} s`);
    task.limit = startTimer(seconds * 1000, over);
  };

  const makeParents = (path: string | null): void => {
    if (path === null) return;
    const parent = dirname(path);
    // looked at each time: between two runs people tidy up
    if (existsSync(parent)) return;
    try {
      makeDirectories(parent);
    } catch {
      // the spawner will name the file that cannot be opened
      return;
    }
  };

  return {
    kind: spawners[0]!.kind,
    start: (task, after) => {
      const group = task.run.groups.get(task.group)!;
      const { slot } = task.chain!;
      const now = clock.now();
      let expanded: ExpandedTask;
      try {
        expanded = forRank(task, expandTask(task.run, group, task.row, task.attempt, task.item));
      } catch (error) {
        finish(task, {
          started: now,
          finished: now,
          ending: Ending.NOT_STARTED,
          code: NO_CODE,
          detail: `not started: ${(error as Error).message}`,
        });
        return;
      }
      const token = tokenOf(options.uuid, task);
      // no directory of the agent's own around it: whoever ends last would have to remove that
      const tmpdir = join(settings.scratch, `slipway-${token}`);
      makeParents(expanded.stdout);
      makeParents(expanded.stderr);
      // a chain stays with one spawner, which knows when a member has ended
      const spawner = task.alone
        ? lone.of(`${task.run.id}.${task.row}.${task.attempt}`)
        : ((after === undefined ? undefined : tasks.get(after.id)?.spawner) ?? leastBusy());
      live.set(spawner, (live.get(spawner) ?? 0) + 1);
      const known = load.get(spawner) ?? new Set();
      load.set(spawner, known);
      if (!known.has(task.run.id)) {
        known.add(task.run.id);
        spawner.defineEnv(
          task.run.id,
          Object.entries({ ...task.run.env, ...fromNode }).map(([name, value]) => `${name}=${value}`),
        );
      }
      const pinned = settings.pin || group.source.pin === true ? pinnableCpus(slot) : [];
      tasks.set(task.id, { task, expanded, tmpdir, spawner });
      const extra = taskEnvironment({
        runId: task.run.id,
        taskIndex: indexOf(task.run, task.row),
        attempt: task.attempt,
        name: group.source.name,
        item: expanded.item,
        slot,
        resources: task.resources,
        tmpdir,
        token,
        gpus: options.gpus,
        env: group.source.env["OMP_NUM_THREADS"] === undefined ? task.run.env : group.source.env,
      });
      spawner.start({
        id: task.id,
        argv: expanded.argv,
        env: task.run.id,
        extraEnv: [...expanded.env, ...extra, ...options.environment, ...(task.rank?.env ?? [])],
        cwd: expanded.cwd,
        stdout: expanded.stdout,
        stderr: expanded.stderr,
        append: group.source.append === true,
        tmpdir,
        cpus: pinned.length > 0 ? pinned : null,
        token,
        graceMs: settings.graceMs,
        after: after?.id ?? null,
        cgroup: options.cgroup,
      });
    },
    end,
    warn: (signal) => {
      for (const { task, spawner } of tasks.values()) {
        if (task.ending !== undefined) continue;
        if (task.pid === 0) end(task, Ending.INTERRUPTED, "its pilot is about to end");
        else {
          task.warned = true;
          spawner.signal(task.id, constants.signals[signal as NodeJS.Signals]);
        }
      }
    },
    forgetRun: (run) => {
      for (const [spawner, known] of load) if (known.delete(run)) spawner.dropEnv(run);
    },
    close: async () => {
      closing = true;
      memory.stop();
      await Promise.all([lone, ...spawners].map((each) => each.close()));
    },
  };
};
