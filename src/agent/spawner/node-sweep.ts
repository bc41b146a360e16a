import type { NodeTask } from "./node-task.ts";
import { createStrayScanner, type Scan, SESSION, sendSignal, standingOf } from "./strays.ts";
import { killCgroup } from "./task-cgroup.ts";

/**
 * Ends what outlives a task's main process: its group, its session, and every process that carries its token. Node is
 * not a subreaper, so a process that left the session and cleared its environment escapes, unless a cgroup holds it.
 */
export interface Sweeper {
  /** The main process has ended: `clear` is called once nothing of the task is left. */
  add(task: NodeTask): void;
  /** TERM to the group and to every process outside of it; CONT wakes the stopped. */
  term(task: NodeTask): void;
  /** A deadline has changed or passed. */
  hurry(): void;
}

/** Ends share a scan of /proc: at most one in this many milliseconds. */
const PERIOD = 1;
const AGAIN = 3;
const GRACE_POLL = 20;
/** Rounds in which only a group of zombies, or processes that we may not signal, were left. */
const ENOUGH = 30;

const survivors = (task: NodeTask, { byToken }: Scan): number[] =>
  [...(byToken.get(task.request.token) ?? []), ...(byToken.get(SESSION + task.pid) ?? [])].filter(
    (pid) => pid !== process.pid && standingOf(pid) !== undefined,
  );

/** True when nothing of the task is left. */
const sweep = (task: NodeTask, scan: Scan, now: number): boolean => {
  const alive = survivors(task, scan);
  const patient = task.ending && now < task.deadline;
  const group = sendSignal(-task.pid, patient ? 0 : "SIGKILL");
  if (alive.length === 0 && !group) return scan.sure;
  if (patient) return false;
  if (task.cgroup !== null) killCgroup(task.cgroup);
  let reached = 0;
  for (const pid of alive) {
    if (!sendSignal(pid, "SIGKILL")) continue;
    reached++;
    task.killed.add(pid);
  }
  return ++task.rounds > ENOUGH && reached === 0;
};

export const createSweeper = (isMain: (pid: number) => boolean, clear: (task: NodeTask) => void): Sweeper => {
  const scanner = createStrayScanner(isMain);
  const waiting = new Set<NodeTask>();
  const terms = new Set<NodeTask>();
  let timer: NodeJS.Timeout | NodeJS.Immediate | undefined;
  let due = Infinity;
  let last = -Infinity;

  const run = (): void => {
    timer = undefined;
    due = Infinity;
    const now = (last = performance.now());
    const scan = scanner.scan();
    for (const task of terms) {
      for (const pid of survivors(task, scan)) {
        if (standingOf(pid)?.group === task.pid) continue;
        sendSignal(pid, "SIGTERM");
        sendSignal(pid, "SIGCONT");
      }
    }
    terms.clear();
    let next = Infinity;
    for (const task of waiting) {
      if (sweep(task, scan, now)) {
        waiting.delete(task);
        clear(task);
      } else {
        next = Math.min(next, task.ending && now < task.deadline ? Math.min(GRACE_POLL, task.deadline - now) : AGAIN);
      }
    }
    if (next < Infinity) schedule(next);
  };

  const schedule = (inMs: number): void => {
    const at = performance.now() + inMs;
    if (at >= due) return;
    due = at;
    clearTimeout(timer as NodeJS.Timeout);
    clearImmediate(timer as NodeJS.Immediate);
    timer = inMs <= 0 ? setImmediate(run) : setTimeout(run, Math.ceil(inMs));
  };

  const soon = (): void => schedule(Math.max(0, last + PERIOD - performance.now()));

  return {
    add: (task) => {
      waiting.add(task);
      soon();
    },
    term: (task) => {
      sendSignal(-task.pid, "SIGTERM");
      sendSignal(-task.pid, "SIGCONT");
      terms.add(task);
      soon();
    },
    hurry: soon,
  };
};
