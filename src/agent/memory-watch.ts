import { createMembership, type TaskRoot } from "./membership.ts";
import { readPageSize, readProcessTable, sumPss, type Process } from "./proc-table.ts";

export interface WatchedTask<Id> extends TaskRoot<Id> {
  /** A task without a limit is only measured. */
  readonly limitBytes?: number | undefined;
  /** When it started, on performance.now(). */
  readonly started: number;
}

export interface MemorySource<Id> {
  tasks(): Iterable<WatchedTask<Id>>;
  /** Called once for a task. The task may have ended at the same moment. */
  onExceeded(id: Id, usedBytes: number): void;
  /** The process table could not be read; the next scan may succeed. */
  onError?(error: unknown): void;
}

export interface MemoryWatchOptions {
  readonly intervalMs?: number;
  readonly procRoot?: string;
  readonly pageSize?: number;
}

export interface MemoryWatch<Id> {
  /** Call when a task has started. The timer stops by itself when none is left. */
  wake(): void;
  /** Scans once, now. */
  scan(): Promise<void>;
  /** The most that scans have seen a task have at once, 0 if none has; the watch forgets it. */
  takePeak(id: Id): number;
  stop(): void;
}

/** While a task has a limit, watching takes at most a twentieth of one core's time, however long one scan lasts. */
const LIMIT_COST = 20;

/** Measuring takes at most a hundredth. */
const MEASURE_COST = 100;

interface Seen {
  /** The most that all its processes had at once, in bytes. */
  peak: number;
  /** Not confirmed, and not measured, again before these times: reading page tables of large processes is slow. */
  nextCheck: number;
  nextMeasure: number;
  reported: boolean;
}

interface Measurement {
  readonly seen: Seen;
  readonly processes: readonly Process[];
}

/** Milliseconds of work since its start: on a busy node a scan takes long because it waits, and waiting costs nobody. */
const startMeter = (): (() => number) => {
  const begun = performance.now();
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return Math.min(performance.now() - begun, (user + system) / 1000);
  };
};

const isLimited = ({ limitBytes = 0 }: WatchedTask<unknown>): boolean => limitBytes > 0;

/**
 * How much memory tasks have, all their processes together. The numbers decide kills and teach requests, so resident
 * sizes alone are never enough where there are several processes: they count shared pages once for each. When their sum
 * is over the limit, or higher than ever before, the proportional sizes are added up, and only these count.
 *
 * A task without a limit is measured once it is as old as an interval: nobody asks twice about what ends sooner, and a
 * node full of short tasks is never scanned.
 */
export const watchMemory = <Id>(source: MemorySource<Id>, options: MemoryWatchOptions = {}): MemoryWatch<Id> => {
  const { intervalMs = 1000, procRoot = "/proc" } = options;
  const pageSize = options.pageSize ?? readPageSize(procRoot);
  const known = new Map<Id, Seen>();
  const membership = createMembership<Id>(procRoot);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let stopped = false;

  const startedTasks = (): WatchedTask<Id>[] => [...source.tasks()].filter(({ pid }) => pid > 1);

  const seenOf = (id: Id): Seen => {
    let seen = known.get(id);
    if (seen === undefined) known.set(id, (seen = { peak: 0, nextCheck: 0, nextMeasure: 0, reported: false }));
    return seen;
  };

  const proportional = (processes: readonly Process[], enough: number): Promise<number> =>
    sumPss(procRoot, pageSize, processes, enough);

  const confirm = async (id: Id, limit: number, { seen, processes }: Measurement): Promise<void> => {
    const spent = startMeter();
    const bytes = await proportional(processes, limit);
    seen.nextCheck = performance.now() + LIMIT_COST * spent();
    seen.peak = Math.max(seen.peak, bytes);
    if (bytes <= limit || stopped) return;
    seen.reported = true;
    source.onExceeded(id, bytes);
  };

  /** At least one, and no more after a hundredth of the interval: limits wait meanwhile. The longest unmeasured first. */
  const measure = async (due: Measurement[]): Promise<void> => {
    const spentInAll = startMeter();
    const inTurn = due.toSorted((a, b) => a.seen.nextMeasure - b.seen.nextMeasure);
    for (const [nth, { seen, processes }] of inTurn.entries()) {
      if ((nth > 0 && spentInAll() > intervalMs / MEASURE_COST) || stopped) return;
      const spent = startMeter();
      seen.peak = Math.max(seen.peak, await proportional(processes, Infinity));
      seen.nextMeasure = performance.now() + MEASURE_COST * spent();
    }
  };

  const scanOnce = async (tasks: readonly WatchedTask<Id>[]): Promise<void> => {
    const members = membership.find(tasks, await readProcessTable(procRoot));
    for (const id of known.keys()) if (!members.has(id)) known.delete(id);
    const due: Measurement[] = [];
    for (const task of tasks) {
      const processes = members.get(task.id)!;
      let bytes = 0;
      for (const process of processes) bytes += process.rssPages * pageSize;
      const seen = seenOf(task.id);
      if (isLimited(task) && bytes > task.limitBytes!) {
        if (!seen.reported && performance.now() >= seen.nextCheck)
          await confirm(task.id, task.limitBytes!, { seen, processes });
      } else if (bytes <= seen.peak) continue;
      else if (processes.length === 1) seen.peak = bytes;
      else if (performance.now() >= seen.nextMeasure) due.push({ seen, processes });
    }
    await measure(due);
  };

  const scan = (tasks: readonly WatchedTask<Id>[]): Promise<void> => {
    running ??= scanOnce(tasks).finally(() => (running = undefined));
    return running;
  };

  const look = async (): Promise<number> => {
    const old = performance.now() - intervalMs;
    const tasks = startedTasks().filter((task) => isLimited(task) || task.started <= old);
    if (tasks.length === 0) return 0;
    const spent = startMeter();
    try {
      await scan(tasks);
    } catch (error) {
      source.onError?.(error);
    }
    return spent() * (tasks.some(isLimited) ? LIMIT_COST : MEASURE_COST);
  };

  const wake = (atLeastMs: number): void => {
    if (stopped || timer !== undefined) return;
    if (startedTasks().length === 0) {
      known.clear();
      membership.forget();
      return;
    }
    const next = async (): Promise<void> => {
      const pauseMs = await look();
      timer = undefined;
      wake(pauseMs);
    };
    timer = setTimeout(() => void next(), Math.max(intervalMs, atLeastMs));
    timer.unref();
  };

  return {
    wake: () => wake(0),
    scan: () => scan(startedTasks()),
    takePeak: (id) => {
      const peak = known.get(id)?.peak ?? 0;
      known.delete(id);
      return peak;
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
      timer = undefined;
    },
  };
};
