import type { Client } from "../../client/index.ts";
import { type Framework, type HeadTick, jobOfWorker } from "../head.ts";
import type { WrapPilot } from "../holder/registry.ts";
import { decidePool, isExpiring, type Surplus, wantedOf } from "../plan/pool.ts";
import { createPilotsView } from "./pilots-view.ts";
import { createWorkerTasks, SHORT_MS, UNNEEDED } from "./worker-tasks.ts";

/**
 * Workers as tasks of a server of one's own, one a node; the server's fleet has a pilot for each. It knows of a framework
 * only its workers' command and their names.
 */
export interface Pool {
  /** What the head sees now; decides. */
  tick(tick: HeadTick): void;
  /** The head lets these workers go. */
  retired(names: readonly string[]): void;
  scale(minimum: number, maximum: number): void;
  /** The head is at another address: workers of the old one are of no use. */
  moved(): void;
  /** Workers that it should have now. */
  wanted(): number;
  pilots(): readonly WrapPilot[];
  /** Starts nothing any more. */
  stop(): void;
}

export interface PoolOptions {
  readonly client: Client;
  readonly framework: Framework;
  /** Where workers connect to, as it is now. */
  readonly address: () => string;
  /** Of a worker: all that a node of a job has. */
  readonly cpus: number;
  readonly perJob: number;
  readonly minimum: number;
  readonly maximum: number;
  /** Asks the head to let workers go, in whole jobs. */
  readonly retire: (workers: number, last?: string) => void;
  /** The run of the head, where that is a task too. */
  readonly headRun?: number | undefined;
  /** Milliseconds after its start at which a pilot takes nothing new. */
  readonly drainMs: (pilot: number) => number | undefined;
  /** What went wrong; undefined: all is well again. */
  readonly report: (problem: string | undefined) => void;
  readonly note: (line: string) => void;
  readonly environment: Readonly<Record<string, string>>;
}

/** What was asked to leave and is still there is cancelled. */
const STUBBORN_MS = 60_000;
/** Whoever has not connected for so long is asked about: an event may have been missed. */
const SILENT_MS = 120_000;

export const createPool = (options: PoolOptions): Pool => {
  const { client, perJob } = options;
  const stopped = new AbortController();
  const view = createPilotsView(options);
  let range = { minimum: options.minimum, maximum: options.maximum };
  let target = 0;
  let surplus: Surplus | undefined;
  let isRetiring = false;

  const decide = (): void => {
    if (stopped.signal.aborted) return;
    const now = Date.now();
    const coming = workers.those("coming");
    const connected = workers.those("connected");
    const decision = decidePool(
      {
        ...range,
        target,
        perJob,
        coming: coming.length + tasks.submitting(),
        connected: connected.length,
        expiring: connected.filter(({ pilot }) => isExpiring(view.drainsAt(pilot!), view.queueWaitMs(), now)).length,
      },
      surplus,
      now,
      { notBefore: tasks.notBefore() },
    );
    surplus = decision.surplus;
    for (let nth = 0; nth < decision.start; nth += 1) tasks.start();
    // those without a place first, the newest first
    const order = coming.toSorted(
      (a, b) => Number(a.pilot !== undefined) - Number(b.pilot !== undefined) || b.run - a.run,
    );
    for (const worker of order.slice(0, decision.cancel)) tasks.cancel(worker);
    if (decision.retire === 0 || isRetiring) return;
    isRetiring = true;
    options.retire(decision.retire, workers.headPilot() === undefined ? undefined : `p${workers.headPilot()}`);
  };
  const tasks = createWorkerTasks({
    ...options,
    stopped: stopped.signal,
    onEnd: decide,
    onPilots: view.changed,
  });
  const { workers } = tasks;

  return {
    tick: (tick) => {
      target = tick.wanted ?? 0;
      const now = Date.now();
      const { pilots, hasJoined } = workers.see(tick, now);
      if (hasJoined) options.report(undefined);
      for (const worker of workers.all()) {
        const { connectedAt, leavingSince, isConnected, pilot, since } = worker;
        if (isConnected && now - connectedAt! > SHORT_MS) tasks.works();
        if (leavingSince !== undefined && now - leavingSince > STUBBORN_MS) tasks.cancel(worker);
        if (pilot !== undefined && !isConnected && now - since > SILENT_MS) tasks.ask(worker);
      }
      view.connected(pilots);
      view.refresh();
      decide();
    },
    retired: (names) => {
      isRetiring = false;
      const jobs = names.map(jobOfWorker).filter((job) => job !== undefined);
      for (const { run } of jobs) {
        const worker = workers.get(run);
        if (worker !== undefined) worker.leavingSince ??= Date.now();
      }
      // the job of a worker that leaves takes no other, and ends with it
      for (const pilot of new Set(jobs.map((job) => job.pilot)))
        // the head's own stays
        if (pilot !== workers.headPilot()) tasks.quietly(client.drainPilot(pilot, UNNEEDED), `pilot ${pilot}`);
    },
    scale: (minimum, maximum) => {
      range = { minimum, maximum };
      decide();
    },
    moved: () => {
      for (const worker of workers.all()) tasks.cancel(worker);
      decide();
    },
    wanted: () => wantedOf({ ...range, target, perJob }),
    pilots: () => view.list(),
    stop: () => stopped.abort(),
  };
};
