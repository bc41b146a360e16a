import { SlipwayError } from "../../errors.ts";
import type { Framework, HeadAddress, HeadEvent, HeadTick, PoolHead } from "../head.ts";
import { takeRequest, type WrapEntry, writeEntry } from "../holder/registry.ts";
import { updateStatus } from "../holder/status-file.ts";
import { keepAlive, type KeepAlive } from "../plan/keep-alive.ts";
import type { OwnPlan } from "../plan/own-plan.ts";
import type { HoldPoolOptions } from "./hold-pool.ts";
import { createPool } from "./pool.ts";
import type { PoolServer } from "./server.ts";

export interface PoolSupervision extends HoldPoolOptions {
  readonly id: string;
  readonly entry: WrapEntry;
  readonly head: PoolHead;
  readonly events: AsyncIterator<HeadEvent>;
  readonly address: HeadAddress;
  readonly headRun: number | undefined;
  readonly server: PoolServer;
  readonly plan: OwnPlan;
  readonly framework: Framework;
  readonly environment: Readonly<Record<string, string>>;
  readonly drainMs: (pilot: number) => number | undefined;
  /** The head is at another address now. */
  readonly tellRunning: (head: HeadAddress) => Promise<void>;
}

/** An orderly end takes a few seconds; a head that takes longer is killed, and its workers end with their pilots. */
const CLOSING_MS = 40_000;

/** Follows a head and its pool until the head has ended, and ends it when it is idle, somebody asks for it, or a signal came. */
export const supervisePool = async (given: PoolSupervision): Promise<void> => {
  const { home, id, head, events, statusFile, note, plan, timeout, stop, server, framework } = given;
  let { address } = given;
  let entry: WrapEntry = { ...given.entry, state: "running", head: address };
  let written = "";
  let idle: KeepAlive = {};
  let closing: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let problem: string | undefined;
  let range = { minimum: plan.minimum, maximum: plan.maximum };

  const show = async (changes: Partial<WrapEntry> = {}): Promise<void> => {
    const { problem: _, ...rest } = entry;
    entry = { ...rest, ...range, ...(problem === undefined ? {} : { problem }), ...changes };
    const text = JSON.stringify(entry);
    if (text === written) return;
    written = text;
    // a home that is full, or away for a moment, must not end a cluster
    await writeEntry(home, entry).catch(() => undefined);
  };
  const pool = createPool({
    client: server.client,
    framework,
    address: () => address.address,
    cpus: plan.worker.cpus,
    perJob: plan.perJob,
    ...range,
    retire: (workers, last) => head.retire(workers, last),
    headRun: given.headRun,
    drainMs: given.drainMs,
    environment: given.environment,
    note,
    report: (text) => {
      if (text === problem || closing !== undefined) return;
      problem = text;
      if (text !== undefined) note(text);
      void updateStatus(statusFile, { problem: text }).catch(() => undefined);
    },
  });
  const end = (why: string): void => {
    if (closing !== undefined) return;
    closing = why;
    note(`closing: ${why}`);
    pool.stop();
    void show({ state: "closing" });
    timer = setTimeout(() => head.kill(), CLOSING_MS);
    head.close();
  };

  const onTick = async (tick: HeadTick): Promise<void> => {
    if (closing !== undefined) return;
    pool.tick(tick);
    const verdict = keepAlive(idle, tick, performance.now(), timeout);
    idle = verdict.state;
    if (verdict.isOver) return end(`no work and no clients for ${timeout} s`);
    const asked = await takeRequest(home, id);
    if (asked?.op === "down") return end("`slipway wrap down`");
    if (asked?.op === "scale") {
      range = { minimum: asked.minimum, maximum: asked.maximum };
      pool.scale(asked.minimum, asked.maximum);
    }
    const pilots = pool.pilots();
    await show({
      work: tick.work,
      tasks: tick.tasks ?? {},
      wanted: pool.wanted(),
      clients: tick.clients,
      workers: tick.workers,
      pilots,
      jobs: pilots.flatMap(({ job, workers }) => (job === null ? [] : [{ id: job, connected: workers > 0 }])),
    });
  };

  const onMoved = async (moved: HeadAddress): Promise<void> => {
    note(`the scheduler's pilot ended; it runs again at ${moved.address}: what it knew of tasks and results is lost`);
    address = moved;
    pool.moved();
    await given.tellRunning(moved);
    await show({ head: moved });
  };

  const onStop = (): void => end("received a signal");
  stop.addEventListener("abort", onStop, { once: true });
  if (stop.aborted) onStop();
  await show();
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) break;
    if (value.event === "tick") await onTick(value);
    else if (value.event === "retired") pool.retired(value.workers);
    else if (value.event === "moved") await onMoved(value);
  }
  pool.stop();
  clearTimeout(timer);
  stop.removeEventListener("abort", onStop);
  if (closing === undefined)
    throw new SlipwayError("wrap-failed", {
      detail: "the Python process that held the scheduler died; its pilots are cancelled",
      remedy: "Start the wrapper again; what the process printed says more.",
    });
};
