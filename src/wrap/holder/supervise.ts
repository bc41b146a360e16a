import { SlipwayError } from "../../errors.ts";
import type { Head, HeadAddress, HeadEvent, HeadTick } from "../head.ts";
import { keepAlive, type KeepAlive } from "../plan/keep-alive.ts";
import type { Plan } from "../plan/plan.ts";
import { endJobs } from "./end-jobs.ts";
import type { HoldOptions } from "./hold.ts";
import { createJobWatch } from "./job-watch.ts";
import { lastWords } from "./last-words.ts";
import type { Ledger, LedgerJob } from "./ledger.ts";
import { managerOf } from "./managers.ts";
import { jobNameOf, takeRequest, type WrapEntry, writeEntry } from "./registry.ts";
import { peekStatus, updateStatus } from "./status-file.ts";

export interface Supervision extends HoldOptions {
  readonly id: string;
  readonly head: Head;
  readonly events: AsyncIterator<HeadEvent>;
  readonly early: readonly HeadEvent[];
  readonly address: HeadAddress;
  readonly ledger: Ledger;
  readonly plan: Plan;
  readonly entry: WrapEntry;
}

/** An orderly end takes a few seconds; a head that takes longer is killed, and its jobs are cancelled by id. */
const CLOSING_MS = 60_000;

/**
 * Follows a head that stands until it has ended, and ends it when it is idle, somebody asks for it, or a signal came.
 * Resolves after a normal end that left no job; rejects when the head died, with its jobs cancelled too.
 */
export const superviseHead = async (given: Supervision): Promise<void> => {
  const { home, id, head, events, early, address, ledger, statusFile, note, plan, timeout, stop } = given;
  const manager = managerOf(address.manager);
  let entry: WrapEntry = {
    ...given.entry,
    state: "running",
    head: address,
    minimum: plan.minimum,
    maximum: plan.maximum,
  };
  let written = "";
  let idle: KeepAlive = {};
  let closing: string | undefined;
  let timer: NodeJS.Timeout | undefined;

  const show = async (changes: Partial<WrapEntry> = {}): Promise<void> => {
    entry = { ...entry, ...changes };
    const text = JSON.stringify(entry);
    if (text === written) return;
    written = text;
    // a home that is full, or away for a moment, must not end a cluster
    await writeEntry(home, entry).catch(() => undefined);
  };
  const end = (why: string): void => {
    if (closing !== undefined) return;
    closing = why;
    note(`closing: ${why}`);
    void show({ state: "closing" });
    timer = setTimeout(() => head.kill(), CLOSING_MS);
    head.close();
  };
  let problem: string | undefined;
  /** One after the other: the last word stands, and none comes after the file's end. */
  let telling: Promise<void> = Promise.resolve();
  const tell = async (text: string | undefined): Promise<void> => {
    // a file that somebody has removed is not made anew
    if ((await peekStatus(statusFile)) !== undefined) await updateStatus(statusFile, { problem: text });
  };
  const watch = createJobWatch({
    manager,
    replace: (names) => head.replace(names),
    record: (jobs: readonly LedgerJob[]) => void ledger.write(address.manager, jobs).catch(() => undefined),
    lastWords: (job) => lastWords(address.log_directory ?? process.cwd(), job),
    report: (text) => {
      if (text === problem || closing !== undefined) return;
      problem = text;
      if (text !== undefined) note(text);
      telling = telling.then(() => tell(text)).catch(() => undefined);
    },
  });

  const onTick = async (tick: HeadTick): Promise<void> => {
    if (closing !== undefined) return;
    watch.tick(tick);
    const verdict = keepAlive(idle, tick, performance.now(), timeout);
    idle = verdict.state;
    if (verdict.isOver) return end(`no work and no clients for ${timeout} s`);
    const asked = await takeRequest(home, id);
    if (asked?.op === "down") return end("`slipway wrap down`");
    if (asked?.op === "scale") head.adapt(asked.minimum, asked.maximum);
    const { problem: _, ...rest } = entry;
    entry = problem === undefined ? rest : { ...rest, problem };
    await show({
      ...(asked?.op === "scale" ? { minimum: asked.minimum, maximum: asked.maximum } : {}),
      work: tick.work,
      tasks: tick.tasks ?? {},
      wanted: tick.wanted ?? tick.jobs.length,
      clients: tick.clients,
      workers: tick.workers,
      jobs: tick.jobs.flatMap(({ id: job, connected }) => {
        const reason = job === null ? undefined : watch.said(job);
        return job === null ? [] : [{ id: job, connected, ...(reason === undefined ? {} : { reason }) }];
      }),
    });
  };

  const onStop = (): void => end("received a signal");
  stop.addEventListener("abort", onStop, { once: true });
  if (stop.aborted) onStop();
  await show();
  let isClosed = false;
  const hear = async (value: HeadEvent): Promise<void> => {
    if (value.event === "tick") await onTick(value);
    else if (value.event === "job") watch.submitted(value);
    else if (value.event === "refused") watch.refused(value.name, value.detail);
    else if (value.event === "closed") isClosed = true;
  };
  for (const value of early) await hear(value);
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) break;
    await hear(value);
  }
  clearTimeout(timer);
  await telling;
  stop.removeEventListener("abort", onStop);
  await endWithJobs({ manager, jobs: watch.known(), jobName: jobNameOf(id), lookTwice: !isClosed });
  if (closing === undefined)
    throw new SlipwayError("wrap-failed", {
      detail: "the Python process that held the cluster died; its jobs were cancelled",
      remedy: "Start the wrapper again; what the process printed says more.",
    });
};

/** Rejects when jobs may be left. */
export const endWithJobs = async ({
  manager,
  ...what
}: Omit<Parameters<typeof endJobs>[0], "manager"> & {
  readonly manager: ReturnType<typeof managerOf>;
}): Promise<void> => {
  if (manager === undefined) return;
  const left = await endJobs({ ...what, manager });
  if (left.length > 0)
    throw new SlipwayError("wrap-failed", {
      detail: `jobs may be left: ${left.map(({ id }) => id).join(", ")}`,
      jobs: left.map(({ id }) => id),
      remedy: "The next start with this status file cancels them, and so does `slipway wrap down`.",
    });
};
