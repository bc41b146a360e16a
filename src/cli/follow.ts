import type { RunView, TaskView, WhyView } from "../api/schemas.ts";
import { type FollowOptions, isFinalRun, succeeded } from "../client/index.ts";
import { SlipwayError } from "../errors.ts";
import type { Context } from "./context.ts";
import type { Display } from "./display.ts";
import { runSummary } from "./render/summary.ts";

const FAILURES_SHOWN = 3;

/** How soon, and how often after that, it is asked why nothing runs. */
const FIRST_MS = 1000;
const AGAIN_MS = 3000;

const isIdle = (run: RunView): boolean => !isFinalRun(run) && (run.counts["AGENT_EXECUTING"] ?? 0) === 0;

/** While nothing of a run runs, its display says why. */
const tellReasons = (
  context: Context,
  id: number,
  display: Display,
  now: () => RunView | undefined,
): { stop(): void } => {
  let timer: NodeJS.Timeout | undefined;
  let stopped = context.quiet || context.json;
  const look = async (): Promise<void> => {
    const before = now();
    if (before !== undefined && isIdle(before)) {
      // the connection may be lost: whoever follows the run says so
      const why = await context.client.why(id).catch(() => undefined);
      const run = now();
      if (!stopped && why !== undefined && run !== undefined && isIdle(run)) display.reason(reasonOf(id, why));
    }
    plan(AGAIN_MS);
  };
  const plan = (ms: number): void => {
    if (!stopped) timer = setTimeout(() => void look(), ms).unref();
  };
  plan(FIRST_MS);
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
};

/** Of an answer to `why`, what a line has room for. */
export const reasonOf = (id: number, { cause, detail, waits = detail }: WhyView): string | undefined => {
  if (cause === "running" || cause === "done") return undefined;
  return waits.startsWith("waiting for ") ? `run ${id} waits ${waits.slice(8)}` : `run ${id} waits: ${waits}`;
};

/** How a display follows a run: it says so when the connection is lost. */
export const followedBy = (display: Display, signal?: AbortSignal): FollowOptions => ({
  signal,
  onLost: () => display.say("the connection to the server was lost; trying again"),
});

/**
 * Follows a run to its end, through restarts of the server, and returns it as it ended; undefined: the user left it.
 * `views` are its views where they are on their way already.
 */
export const followRun = async (
  context: Context,
  id: number,
  display: Display,
  { signal, views: given }: { readonly signal?: AbortSignal; readonly views?: AsyncIterable<RunView> } = {},
): Promise<RunView | undefined> => {
  let last: RunView | undefined;
  const views = given ?? context.client.watch(id, followedBy(display, signal));
  const reasons = tellReasons(context, id, display, () => last);
  try {
    for await (const view of views) {
      last = view;
      if (!isIdle(view)) display.reason(undefined);
      display.update(view);
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    reasons.stop();
    display.end();
  }
  if (signal?.aborted === true && (last === undefined || !isFinalRun(last))) return undefined;
  if (last === undefined || !isFinalRun(last))
    throw new SlipwayError("internal", { detail: `the server stopped reporting on run ${id} before it ended` });
  return last;
};

/** The first failed tasks of a run. */
export const failuresOf = async (context: Context, run: RunView): Promise<TaskView[]> =>
  (run.counts["FAILED"] ?? 0) > 0 ? context.client.tasks(run.id, { state: "FAILED", limit: FAILURES_SHOWN }) : [];

export const summaryOf = async (
  context: Context,
  run: RunView,
  style: Context["style"],
  { stops = false } = {},
): Promise<string> =>
  runSummary(run, await failuresOf(context, run), style, context.client.now(), succeeded(run), stops, context.program);

export const exitStatus = (runs: readonly RunView[]): number => (runs.every(succeeded) ? 0 : 1);
