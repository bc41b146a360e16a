import type { RunView, TaskView } from "../api/schemas.ts";
import { isFinalRun, succeeded } from "../client/index.ts";
import { SlipwayError } from "../errors.ts";
import type { Context } from "./context.ts";
import type { Display } from "./display.ts";
import { runSummary } from "./render/summary.ts";

const FAILURES_SHOWN = 3;

/** Follows a run to its end, through restarts of the server, and returns it as it ended. */
export const followRun = async (
  context: Context,
  id: number,
  display: Display,
  { wasThere = false } = {},
): Promise<RunView> => {
  let last: RunView | undefined;
  const views = context.client.watch(id, {
    wasThere,
    onLost: () => display.say("the connection to the server was lost; trying again"),
  });
  for await (const view of views) {
    last = view;
    display.update(view);
  }
  display.end();
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
  runSummary(run, await failuresOf(context, run), style, context.client.now(), succeeded(run), stops);

export const exitStatus = (runs: readonly RunView[]): number => (runs.every(succeeded) ? 0 : 1);
