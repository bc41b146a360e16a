import { createMembership, type TaskRoot } from "./membership.ts";
import { readPageSize, readProcessTable, readPss, type Process } from "./proc-table.ts";

export interface WatchedTask<Id> extends TaskRoot<Id> {
  /** A task without a limit is not watched. */
  readonly limitBytes?: number | undefined;
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

export interface MemoryWatch {
  /** Call when a task with a limit has started. The timer stops by itself when no such task is left. */
  wake(): void;
  /** Scans all tasks once, now. */
  scan(): Promise<void>;
  stop(): void;
}

/** Watching takes at most a twentieth of the time, however long one scan lasts. */
const COST_FACTOR = 20;
interface Suspect {
  /** Not measured again before this time: reading page tables of large processes is slow. */
  nextCheck: number;
  reported: boolean;
}

type Limited<Id> = WatchedTask<Id> & { readonly limitBytes: number };

/**
 * These numbers decide kills, so resident sizes alone are never enough: they count shared pages once per process. When
 * their sum is over the limit, the proportional sizes are added up, and only these count.
 */
export const watchMemory = <Id>(source: MemorySource<Id>, options: MemoryWatchOptions = {}): MemoryWatch => {
  const { intervalMs = 1000, procRoot = "/proc" } = options;
  const pageSize = options.pageSize ?? readPageSize(procRoot);
  const suspects = new Map<Id, Suspect>();
  const membership = createMembership<Id>(procRoot);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let stopped = false;

  const limitedTasks = (): Limited<Id>[] => {
    const tasks: Limited<Id>[] = [];
    for (const task of source.tasks()) if ((task.limitBytes ?? 0) > 0 && task.pid > 1) tasks.push(task as Limited<Id>);
    return tasks;
  };

  const confirm = async (task: Limited<Id>, processes: Process[], suspect: Suspect): Promise<void> => {
    const begun = performance.now();
    let bytes = 0;
    for (const process of processes) {
      bytes += (await readPss(procRoot, process.pid)) ?? process.rssPages * pageSize;
      if (bytes > task.limitBytes) break;
    }
    const ended = performance.now();
    suspect.nextCheck = ended + COST_FACTOR * (ended - begun);
    if (bytes <= task.limitBytes || stopped) return;
    suspect.reported = true;
    source.onExceeded(task.id, bytes);
  };

  const scanOnce = async (tasks: Limited<Id>[]): Promise<void> => {
    const members = membership.find(tasks, await readProcessTable(procRoot));
    for (const id of suspects.keys()) if (!members.has(id)) suspects.delete(id);
    for (const task of tasks) {
      const processes = members.get(task.id)!;
      let pages = 0;
      for (const process of processes) pages += process.rssPages;
      if (pages * pageSize <= task.limitBytes) continue;
      let suspect = suspects.get(task.id);
      if (suspect === undefined) suspects.set(task.id, (suspect = { nextCheck: 0, reported: false }));
      if (suspect.reported || performance.now() < suspect.nextCheck) continue;
      await confirm(task, processes, suspect);
    }
  };

  const scan = (): Promise<void> => {
    const tasks = limitedTasks();
    running ??= scanOnce(tasks).finally(() => (running = undefined));
    return running;
  };

  const wake = (atLeastMs: number): void => {
    if (stopped || timer !== undefined) return;
    if (limitedTasks().length === 0) {
      suspects.clear();
      membership.forget();
      return;
    }
    const look = async (): Promise<void> => {
      const begun = performance.now();
      try {
        await scan();
      } catch (error) {
        source.onError?.(error);
      }
      timer = undefined;
      wake(COST_FACTOR * (performance.now() - begun));
    };
    timer = setTimeout(() => void look(), Math.max(intervalMs, atLeastMs));
    timer.unref();
  };

  return {
    wake: () => wake(0),
    scan,
    stop() {
      stopped = true;
      clearTimeout(timer);
      timer = undefined;
    },
  };
};
