import { readPageSize, readProcessTable, readPss, readVariable, type Process } from "./proc-table.ts";

export interface WatchedTask<Id> {
  readonly id: Id;
  /** Its main process. */
  readonly pid: number;
  /** The value of SLIPWAY_TOKEN in its environment. */
  readonly token: string;
  /** A task without a limit is not watched. */
  readonly limitBytes?: number | undefined;
}

export interface MemorySource<Id> {
  tasks(): Iterable<WatchedTask<Id>>;
  /** Called once for a task. It may have ended at the same moment. */
  onExceeded(id: Id, usedBytes: number): void;
  /** The process table could not be read; the next look may see better. */
  onError?(error: unknown): void;
}

export interface MemoryWatchOptions {
  readonly intervalMs?: number;
  readonly procRoot?: string;
  readonly pageSize?: number;
}

export interface MemoryWatch {
  /** Call when a task with a limit has started. The timer stops by itself when none is left. */
  wake(): void;
  /** One look at all tasks now. */
  scan(): Promise<void>;
  stop(): void;
}

/** Watching takes at most a twentieth of the time, however long one look lasts. */
const COST_FACTOR = 20;
/** Environments read in one scan: the rest of a crowd of strangers waits for the next. */
const MOST_ENVIRONMENTS = 256;

/** What is remembered of a process between scans, so that it stays with its task after its parent is gone. */
interface Known<Id> {
  readonly started: number;
  readonly id: Id | undefined;
  /** Undefined: its environment was not read, for its parents said whose it is. */
  readonly token?: string | null;
}

interface Suspect {
  /** Counted once more not before this time: reading page tables of large processes is slow. */
  nextCheck: number;
  reported: boolean;
}

type Limited<Id> = WatchedTask<Id> & { readonly limitBytes: number };

/**
 * Kills are decided here, so nothing is reported on resident sizes alone: they count shared pages once per process.
 * When their sum is over the limit, the proportional sizes are added up, and only these count.
 *
 * To a task belong its main process, the session and the group that this leads, all descendants, and, when reparented,
 * whatever was seen to belong to it before or carries its token.
 */
export const watchMemory = <Id>(source: MemorySource<Id>, options: MemoryWatchOptions = {}): MemoryWatch => {
  const { intervalMs = 1000, procRoot = "/proc" } = options;
  const pageSize = options.pageSize ?? readPageSize(procRoot);
  const suspects = new Map<Id, Suspect>();
  let known = new Map<number, Known<Id>>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let stopped = false;

  const limitedTasks = (): Limited<Id>[] => {
    const tasks: Limited<Id>[] = [];
    for (const task of source.tasks()) if ((task.limitBytes ?? 0) > 0 && task.pid > 1) tasks.push(task as Limited<Id>);
    return tasks;
  };

  const findProcesses = (tasks: Limited<Id>[], table: Map<number, Process>): Map<Id, Process[]> => {
    const byPid = new Map(tasks.map((task) => [task.pid, task.id]));
    const byToken = new Map(tasks.map((task) => [task.token, task.id]));
    const members = new Map<Id, Process[]>(tasks.map((task) => [task.id, []]));
    const remembered = new Map<number, Known<Id>>();
    let budget = MOST_ENVIRONMENTS;

    const strangerOrMember = (process: Process): Known<Id> | undefined => {
      const { pid, started } = process;
      const before = known.get(pid);
      let token = before?.started === started ? before.token : undefined;
      if (token === undefined) {
        if (budget-- <= 0) return undefined;
        token = readVariable(procRoot, pid, "SLIPWAY_TOKEN");
      }
      return { started, token, id: token === null ? undefined : byToken.get(token) };
    };

    const direct = (process: Process): Id | undefined => {
      const id = byPid.get(process.pid) ?? byPid.get(process.session) ?? byPid.get(process.group);
      if (id !== undefined) return id;
      const before = known.get(process.pid);
      return before?.started === process.started && before.id !== undefined && members.has(before.id)
        ? before.id
        : undefined;
    };

    // `found` also marks processes on the way up: a table read while pids are reused may hold a circle.
    const found = new Map<number, Id | undefined>();
    const owner = (process: Process): Id | undefined => {
      const path: number[] = [];
      let id: Id | undefined;
      for (let each: Process | undefined = process; each !== undefined; each = table.get(each.parent)) {
        if (found.has(each.pid)) {
          id = found.get(each.pid);
          break;
        }
        found.set(each.pid, undefined);
        path.push(each.pid);
        id = direct(each);
        if (id !== undefined) break;
      }
      for (const pid of path) found.set(pid, id);
      return id;
    };

    for (const process of table.values()) {
      let id = owner(process);
      if (id === undefined) {
        const seen = strangerOrMember(process);
        if (seen !== undefined) remembered.set(process.pid, seen);
        id = seen?.id;
        if (id === undefined) continue;
      } else remembered.set(process.pid, { started: process.started, id });
      members.get(id)!.push(process);
    }
    known = remembered;
    return members;
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
    const members = findProcesses(tasks, await readProcessTable(procRoot));
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

  const tick = async (): Promise<void> => {
    const begun = performance.now();
    try {
      await scan();
    } catch (error) {
      source.onError?.(error);
    }
    timer = undefined;
    wake(COST_FACTOR * (performance.now() - begun));
  };

  const wake = (atLeastMs: number): void => {
    if (stopped || timer !== undefined) return;
    if (limitedTasks().length === 0) {
      suspects.clear();
      known.clear();
      return;
    }
    timer = setTimeout(() => void tick(), Math.max(intervalMs, atLeastMs));
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
