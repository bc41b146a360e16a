import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "./context.ts";
import { displayFor } from "./display.ts";
import { exitStatus, followRun, summaryOf } from "./follow.ts";
import { onInterrupts } from "./interrupts.ts";
import { ensureServer, otherRunsLive, releaseServer } from "./own-server.ts";
import { plural } from "./render/text.ts";
import { printResult, resultTask } from "./result.ts";
import { defineSubmission } from "./submission-options.ts";
import { prepareSubmission, type Submission } from "./submission.ts";
import { type Define, examples } from "./verb.ts";

const INTERRUPTED = 130;
/** After Ctrl-C, how long a submission under way may take to become a run that can be cancelled. */
const GRACE_MS = 2000;

/** The run as it ended: the one document of --json, or a summary, and the result's output alone on standard output. */
const conclude = async (context: Context, id: number, own: boolean): Promise<number> => {
  const run = await context.client.run(id);
  if (context.json) {
    context.printJson(run);
    return exitStatus([run]);
  }
  const result = resultTask(run);
  if (!context.quiet) {
    // Where there is an output to print, standard output holds that and nothing else.
    const [output, style] = result === undefined ? [context.out, context.style] : [context.err, context.errorStyle];
    output.line(await summaryOf(context, run, style, { stops: own && !(await otherRunsLive(context)) }));
  }
  if (result !== undefined) await printResult(context, run, result);
  return exitStatus([run]);
};

/** Submits and follows. Ctrl-C once cancels the run and waits for its end; twice leaves at once. */
const submitAndFollow = async (context: Context, { document, items }: Submission, own: boolean): Promise<number> => {
  const display = displayFor(context);
  const interrupt = new AbortController();
  let id: number | undefined;

  const cancel = async (): Promise<void> => {
    if (id === undefined) return;
    display.say(`canceling run ${id}; Ctrl-C again leaves at once`);
    display.state("canceling");
    await context.client.cancel(id, { reason: "interrupted by its user" });
  };
  const leave = (): void => {
    display.end();
    if (!own) process.exit(INTERRUPTED);
    // Our own server is told to stop too, but not waited for.
    const left = (): never => process.exit(INTERRUPTED);
    setTimeout(left, 300);
    context.client.stop({ now: true }).then(left, left);
  };
  const restore = onInterrupts(() => {
    interrupt.abort();
    cancel().catch((error: unknown) => display.say(`the run could not be canceled: ${(error as Error).message}`));
  }, leave);

  try {
    const submitted = context.client.submit(document, items);
    const late = once(interrupt.signal, "abort").then(() => sleep(GRACE_MS, undefined, { ref: false }));
    const answer = await Promise.race([submitted, late]);
    if (answer === undefined) {
      submitted.catch(() => undefined);
      context.note("interrupted: nothing was submitted");
      return INTERRUPTED;
    }
    id = answer.run;
    context.note(`run ${answer.run}: ${plural(answer.total, "task")}`);
    if (interrupt.signal.aborted) await cancel();
    await followRun(context, answer.run, display, { wasThere: true });
    const status = await conclude(context, answer.run, own);
    return interrupt.signal.aborted ? INTERRUPTED : status;
  } finally {
    display.end();
    restore();
  }
};

export const define: Define = (command, { act }) =>
  void defineSubmission(command)
    .description(
      "Submit tasks, follow them with a progress bar and print a summary. Without a server, one is started for the run " +
        "and stopped at its end. Exit status: 0 all tasks done, 1 some failed or were canceled, 130 interrupted.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway run -- echo hello",
        "slipway run --array 1-100 --cpus 1 -- ./sim --seed {item}",
        "slipway run --each-line files.txt --retries 2 -- gzip {item}",
        "slipway run examples/montecarlo.yaml",
      ]),
    )
    .action(
      act(async (context, _args, command) => {
        const submission = await prepareSubmission(command);
        for (const warning of submission.warnings) context.note(`warning: ${warning}`);
        const own = await ensureServer(context, submission);
        try {
          return await submitAndFollow(context, submission, own);
        } finally {
          if (own) await releaseServer(context);
        }
      }),
    );
