import type { EventView } from "../../api/schemas.ts";
import type { Client } from "../../client/index.ts";
import { afterFailure, NO_FAILURES, type Replacements } from "../plan/replacements.ts";
import type { PoolOptions } from "./pool.ts";
import { taskDocument } from "./task-document.ts";
import { createWorkers, type Worker, type Workers } from "./workers.ts";

/**
 * Workers as tasks: submits them, cancels them, and hears how they end. A worker that ends before it connects, or soon
 * after, is reported with what it said, and nothing is started for a while that grows.
 */
export interface WorkerTasks {
  readonly workers: Workers;
  /** Submissions that are not answered yet. */
  submitting(): number;
  /** Nothing should be started before. */
  notBefore(): number;
  start(): void;
  cancel(worker: Worker): void;
  /** Asks the server about one of which nothing was heard. */
  ask(worker: Worker): void;
  /** A worker lives: what failed before is forgotten. */
  works(): void;
  /** Errors are told and stop nothing. */
  quietly(what: Promise<unknown>, doing: string): void;
}

export interface WorkerTasksOptions extends PoolOptions {
  readonly stopped: AbortSignal;
  /** A worker has ended. */
  readonly onEnd: () => void;
  /** Pilots or agents have changed. */
  readonly onPilots: () => void;
}

/** A worker that ends this soon after it connected does not work. */
export const SHORT_MS = 10_000;
const ENDED = ["DONE", "FAILED", "CANCELED"];
export const UNNEEDED = { reason: "no longer needed" };

export const lastLines = (text: string | null): string =>
  (text ?? "").trimEnd().split("\n").slice(-3).join(" | ").slice(-500);

/** How a worker ended that should not have, in words. */
const endOf = async (client: Client, { run, pilot, connectedAt }: Worker, task = ""): Promise<string> => {
  const { exitCode, reason, lastStderr } = await client.task(run, Number(task.split(".")[1] ?? 0));
  const how = reason ?? (exitCode === null ? "without a word" : `exit code ${exitCode}`);
  const said = lastLines(lastStderr);
  const where = pilot === undefined ? "" : ` on pilot ${pilot}`;
  const when = connectedAt === undefined ? "before it connected" : "while it was connected";
  return `worker ${run}${where} ended ${when} (${how})${said === "" ? "" : `: ${said}`}`;
};

/** Pauses between tries that fail. */
const createFailing = (report: PoolOptions["report"]) => {
  let failing: Replacements = NO_FAILURES;
  let at = 0;
  return {
    get notBefore() {
      return failing.notBefore;
    },
    reset: () => {
      failing = NO_FAILURES;
    },
    /** `since`: when what failed was started. Several that were started together fail for one reason. */
    failed: (since: number, problem: string): void => {
      if (since >= at) {
        failing = afterFailure(failing, Date.now());
        at = Date.now();
      }
      const seconds = Math.max(0, Math.round((failing.notBefore - Date.now()) / 1000));
      report(`${problem}; ${seconds === 0 ? "started again" : `started again in ${seconds} s`}`);
    },
  };
};

export const createWorkerTasks = (options: WorkerTasksOptions): WorkerTasks => {
  const { client, framework, note, stopped, onEnd } = options;
  const workers = createWorkers(options.headRun);
  const failing = createFailing(options.report);
  /** Runs that ended before their submission was answered. */
  const early = new Map<number, EventView>();
  let submitting = 0;

  const quietly = (what: Promise<unknown>, doing: string): void =>
    void what.catch((error: unknown) => (stopped.aborted ? undefined : note(`${doing}: ${(error as Error).message}`)));

  const start = async (): Promise<void> => {
    submitting += 1;
    const since = Date.now();
    try {
      const { run } = await client.submit(taskDocument("worker", framework.worker(options.address()), options));
      workers.add(run, since);
      const over = early.get(run);
      if (over !== undefined) ended(over);
    } catch (error) {
      if (!stopped.aborted) failing.failed(since, `a worker could not be submitted: ${(error as Error).message}`);
    } finally {
      submitting -= 1;
    }
  };

  const judge = async (worker: Worker, { task, detail = {} }: EventView): Promise<void> => {
    const { connectedAt, leavingSince, since } = worker;
    const isShort = connectedAt === undefined || Date.now() - connectedAt < SHORT_MS;
    const isWell = leavingSince !== undefined || (connectedAt !== undefined && detail["state"] === "DONE");
    if (isWell || stopped.aborted) return;
    const text = await endOf(client, worker, task);
    if (stopped.aborted) return;
    if (isShort) failing.failed(since, text);
    else note(text);
  };

  const ended = (event: EventView): void => {
    const worker = workers.get(event.run!);
    if (worker === undefined) return void early.set(event.run!, event);
    workers.remove(worker.run);
    // what is replaced, and when, depends on how it ended
    quietly(judge(worker, event).finally(onEnd), `worker ${worker.run}`);
  };

  /** What an event would have said. */
  const ask = async ({ run }: Worker): Promise<void> => {
    const [task] = await client.tasks(run);
    if (task !== undefined && ENDED.includes(task.state) && workers.get(run) !== undefined)
      ended({ seq: 0, time: "", event: "task.ended", run, task: task.id, detail: { state: task.state } });
  };

  const follow = async (): Promise<void> => {
    const following = { follow: true, signal: stopped, patience: Infinity, wasThere: true };
    for await (const event of client.events(following)) {
      workers.hear(event);
      if (/^(pilot|agent)\./.test(event.event)) options.onPilots();
      if (event.event === "task.ended") ended(event);
      if (event.event === "server.started") for (const worker of workers.all()) quietly(ask(worker), "its server");
    }
  };
  quietly(follow(), "events of the server");

  return {
    workers,
    submitting: () => submitting,
    notBefore: () => failing.notBefore,
    start: () => void start(),
    cancel: (worker) => {
      worker.leavingSince = Date.now();
      quietly(client.cancel(worker.run, UNNEEDED), `worker ${worker.run}`);
    },
    ask: (worker) => quietly(ask(worker), "its server"),
    works: failing.reset,
    quietly,
  };
};
