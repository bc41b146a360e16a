import { constants } from "node:os";
import { join } from "node:path";
import { isOver } from "../../process-stat.ts";
import { errnoName, failedStart, writeExit } from "./events.ts";
import type { FifoPool } from "./fifo-pool.ts";
import { createSweeper } from "./node-sweep.ts";
import { type NodeTask, startTask } from "./node-task.ts";
import type { Outbox } from "./outbox.ts";
import { Event, NONE, type StartRequest } from "./protocol.ts";
import type { RequestOrder } from "./request-order.ts";
import type { Shutdown } from "./shutdown.ts";
import { sendSignal } from "./strays.ts";
import { createSuccessors } from "./successors.ts";
import { readCgroupPeak, readOomKills, removeCgroup } from "./task-cgroup.ts";
import { createTmpdirs } from "./tmpdirs.ts";

export type Env = Readonly<Record<string, string>>;

/** Adds a `NAME=VALUE`. */
export const put = (env: Record<string, string>, entry: string): void => {
  const equals = entry.indexOf("=");
  if (equals < 0) env[entry] = "";
  else env[entry.slice(0, equals)] = entry.slice(equals + 1);
};

export const emptyEnv = (): Record<string, string> => Object.create(null) as Record<string, string>;

/** A task that ends sooner is reported in one piece, its pipes never watched. */
const YOUNG_MS = 5;

export interface NodeTasksOptions {
  /** Base environments by their ids. */
  readonly environments: ReadonlyMap<number, Env>;
  readonly pool: FifoPool;
  readonly outbox: Outbox;
  readonly order: RequestOrder;
  readonly shutdown: Shutdown;
}

/**
 * The tasks of the Node spawner, each from its start to the exit that it reports to the agent.
 *
 *     behind another ──► runs ──► main process ended ──► swept ──► cleaned up ──► drained ──► exit reported
 */
export class NodeTasks {
  private readonly options: NodeTasksOptions;
  private readonly tasks = new Map<number, NodeTask>();
  private readonly successors = createSuccessors();
  private readonly tmpdirs = createTmpdirs();
  private readonly mains = new Set<number>();
  private readonly young = new Set<NodeTask>();
  private youngTimer: NodeJS.Timeout | undefined;
  /** Ended, swept and cleaned up, but the agent must read before the rest of their output fits. */
  private readonly draining = new Set<NodeTask>();
  private readonly sweeper = createSweeper(
    (pid) => this.mains.has(pid),
    (task) => void this.cleanUp(task),
  );

  constructor(options: NodeTasksOptions) {
    this.options = options;
  }

  get size(): number {
    return this.tasks.size;
  }

  /** Starts it now, or when the task that it names has ended. */
  start(request: StartRequest): void {
    const { after } = request;
    if (after !== null && (this.tasks.has(after) || this.successors.has(after))) this.successors.add(request, after);
    else this.begin(request);
  }

  /** TERM, grace, KILL; a task that waits behind another never begins. It may have ended in the meantime. */
  end(id: number, graceMs: number): void {
    if (this.successors.drop(id)) return this.tellDropped(id);
    const task = this.tasks.get(id);
    if (task !== undefined) this.endTask(task, graceMs === NONE ? task.request.graceMs : graceMs);
  }

  signal(id: number, signo: number): void {
    const task = this.tasks.get(id);
    if (task !== undefined && !task.left && task.pid > 0 && signo > 0 && signo <= 64) sendSignal(-task.pid, signo);
  }

  /** Nothing is left to do: removes what is kept between tasks. */
  close(): void {
    this.tmpdirs.close();
  }

  /** With the grace that each was given, or with this one. */
  endAll(graceMs?: number): void {
    for (const task of this.tasks.values()) this.endTask(task, graceMs ?? task.request.graceMs);
  }

  /** The agent reads again. */
  resume(): void {
    for (const task of this.tasks.values()) for (const capture of task.captures) capture.resume();
    for (const task of this.draining) this.finish(task);
  }

  private begin(request: StartRequest): void {
    const { pool, outbox, environments } = this.options;
    const base = environments.get(request.env);
    if (base === undefined || this.tasks.has(request.id)) throw new RangeError("unknown environment or task id in use");
    const env = Object.assign(emptyEnv(), base);
    for (const entry of request.extraEnv) put(env, entry);
    const task = startTask(request, {
      pool,
      gate: outbox.gate,
      env,
      tmpdirs: this.tmpdirs,
      output: (each, fd, chunk) => this.tellOutput(each, fd, chunk),
      ended: (each) => this.mainEnded(each),
    });
    this.tasks.set(request.id, task);
    if (task.pid === 0) return;
    this.mains.add(task.pid);
    outbox.writer.begin(Event.STARTED);
    outbox.writer.u32(request.id);
    outbox.writer.u32(task.pid);
    outbox.writer.end();
    outbox.schedule();
    if (task.captures.length === 0) return;
    this.young.add(task);
    this.youngTimer ??= setTimeout(() => this.watchYoung(), YOUNG_MS);
  }

  private watchYoung(): void {
    this.youngTimer = undefined;
    for (const task of this.young) for (const capture of task.captures) capture.watch();
    this.young.clear();
  }

  private endTask(task: NodeTask, graceMs: number): void {
    const deadline = performance.now() + graceMs;
    const first = !task.ending && !task.left;
    if (!first && (!task.ending || deadline >= task.deadline)) return;
    // over by itself, though we have not heard of it yet: not ended by us
    if (first && task.pid > 0 && isOver(task.pid)) return;
    task.ending = true;
    task.deadline = deadline;
    if (first && task.pid > 0) this.sweeper.term(task);
    clearTimeout(task.timer);
    task.timer = setTimeout(() => {
      if (!task.left && task.pid > 0) sendSignal(-task.pid, "SIGKILL");
      this.sweeper.hurry();
    }, graceMs);
  }

  private mainEnded(task: NodeTask): void {
    this.young.delete(task);
    this.mains.delete(task.pid);
    if (task.pid === 0) void this.cleanUp(task);
    else this.sweeper.add(task);
  }

  private async cleanUp(task: NodeTask): Promise<void> {
    if (task.cgroup !== null) {
      task.cgroupPeak = readCgroupPeak(task.cgroup);
      // who ended well was not killed
      if (task.code !== 0) task.oomKills = readOomKills(join(task.cgroup, "memory.events"));
      await removeCgroup(task.cgroup);
    }
    if (task.tmpdir !== null) await this.tmpdirs.remove(task.tmpdir);
    this.finish(task);
  }

  /** Reports the exit, once the rest of the output is reported. */
  private finish(task: NodeTask): void {
    const { order, shutdown } = this.options;
    this.draining.add(task);
    for (const capture of task.captures) if (!capture.drain()) return;
    this.draining.delete(task);
    clearTimeout(task.timer);
    this.tellExit(task);
    this.tasks.delete(task.request.id);
    if (shutdown.begun) setImmediate(shutdown.check);
    else for (const next of this.successors.take(task.request.id)) order.perform(() => this.begin(next));
  }

  private tellOutput(task: NodeTask, fd: 1 | 2, chunk: Buffer): void {
    const { writer, schedule } = this.options.outbox;
    writer.begin(Event.OUTPUT);
    writer.u32(task.request.id);
    writer.u8(fd);
    writer.bytes(chunk);
    writer.end();
    schedule();
  }

  private tellExit(task: NodeTask): void {
    const { failure } = task;
    writeExit(this.options.outbox.writer, {
      id: task.request.id,
      code: failure?.stage === "exec" ? (errnoName(failure.errno) === "ENOENT" ? 127 : 126) : task.code,
      signal: task.signal,
      startedAt: task.startedAt,
      endedAt: task.endedAt,
      error: failure === null ? null : { ...failure, code: errnoName(failure.errno) },
      maxRssBytes: 0,
      cgroupPeakBytes: task.cgroupPeak,
      oomKills: task.oomKills,
      userMs: 0,
      systemMs: 0,
      readBytes: 0,
      writtenBytes: 0,
      ended: task.ending,
      strays: task.killed.size,
    });
    this.options.outbox.schedule();
  }

  private tellDropped(id: number): void {
    const now = Date.now();
    const dropped = { ...failedStart(id, "dropped", constants.errno.ECANCELED), ended: true };
    writeExit(this.options.outbox.writer, { ...dropped, startedAt: now, endedAt: now });
    this.options.outbox.schedule();
  }
}
