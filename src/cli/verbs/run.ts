import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../context.ts";
import { printBackendUsage } from "../backend-usage.ts";
import { tellRedirected } from "../cluster-problems.ts";
import { displayFor } from "../display.ts";
import { exitStatus, followRun, followedBy, summaryOf } from "../follow.ts";
import { type Joblog, openJoblog } from "../joblog.ts";
import { onInterrupts } from "../interrupts.ts";
import { type Leaving, offerLeaving, tellLeft } from "../leaving.ts";
import { otherRunsLive, releaseServer, withServer } from "../own-server.ts";
import { plural } from "../render/text.ts";
import { readResult, resultTask } from "../result.ts";
import { defineSubmission } from "../submission-options.ts";
import { prepareCheck, prepareSubmission, type Submission, tellOf } from "../submission.ts";
import { type Define, examples } from "../verb.ts";

const INTERRUPTED = 130;
/** After Ctrl-C, how long a submission under way may take to become a run that can be cancelled. */
const GRACE_MS = 2000;

/** The server of a run, and whether this process started it and so must stop it. */
interface Lease {
  own: boolean;
}

/** Everything that is printed of a run that has ended, read before anything is written. */
const readConclusion = async (context: Context, id: number, lease: Lease) => {
  const run = await context.client.run(id);
  if (context.json) return { run };
  const index = resultTask(run);
  const result = index === undefined ? undefined : await readResult(context, run, index);
  const style = result === undefined ? context.style : context.errorStyle;
  const stops = lease.own && !(await otherRunsLive(context));
  return { run, result, summary: context.quiet ? undefined : await summaryOf(context, run, style, { stops }) };
};

/** The one document of --json, or the result's output alone on standard output, and a summary. */
const conclude = async (
  context: Context,
  { run, result, summary }: Awaited<ReturnType<typeof readConclusion>>,
): Promise<number> => {
  if (context.json) context.printJson(run);
  if (result?.note !== undefined) context.note(result.note);
  for (const piece of result?.out ?? []) await context.out.bytes(piece);
  for (const piece of result?.err ?? []) await context.err.bytes(piece);
  // Where there is an output to print, standard output holds that and nothing else.
  if (summary !== undefined) (result === undefined ? context.out : context.err).line(summary);
  return exitStatus([run]);
};

/** Submits and follows. Ctrl-C once cancels the run and waits for its end; twice leaves at once. */
const submitAndFollow = async (
  context: Context,
  submission: Submission,
  lease: Lease,
  joblog: Joblog | undefined,
): Promise<number> => {
  const { document, items } = submission;
  const found = (): void => {
    lease.own = true;
  };
  const display = displayFor(context);
  const interrupt = new AbortController();
  const left = new AbortController();
  let id: number | undefined;
  let leaving: Leaving | undefined;

  const cancel = async (): Promise<void> => {
    if (id === undefined) return;
    display.say(`cancelling run ${id}; Ctrl-C again leaves at once`);
    display.state("cancelling");
    await context.client.cancel(id, { reason: "interrupted by its user" });
  };
  const leave = (): void => {
    display.end();
    if (!lease.own) process.exit(INTERRUPTED);
    // Stop our own server too, but do not wait for it.
    const left = (): never => process.exit(INTERRUPTED);
    setTimeout(left, 300);
    context.client.stop({ now: true }).then(left, left);
  };
  const restore = onInterrupts(() => {
    interrupt.abort();
    cancel().catch((error: unknown) => display.say(`the run could not be cancelled: ${(error as Error).message}`));
  }, leave);

  try {
    // A repeated submission is the same run; items of a pipe can be sent only once.
    const repeatable = items.every((stream) => stream.once !== true);
    const submitted = withServer(context, submission, { found, repeatable }, () =>
      context.client.submitAndWatch(document, { items, ...followedBy(display, left.signal) }),
    );
    const late = once(interrupt.signal, "abort").then(() => sleep(GRACE_MS, undefined, { ref: false }));
    const watched = await Promise.race([submitted, late]);
    if (watched === undefined) {
      submitted.catch(() => undefined);
      context.note("interrupted: nothing was submitted");
      return INTERRUPTED;
    }
    const { answer, views } = watched;
    id = answer.run;
    context.note(`run ${answer.run}: ${plural(answer.total, "task")}`);
    tellRedirected(context, answer);
    if (interrupt.signal.aborted) await cancel();
    const log = joblog?.follow(answer.run);
    leaving = offerLeaving(context, display, "Ctrl-C cancels it", left);
    const ended = await followRun(context, answer.run, display, { views, signal: left.signal });
    if (ended === undefined) {
      await log?.left();
      tellLeft(context, answer.run);
      if (lease.own) context.note("its server stays up: `slipway down` stops it");
      // it has work to do
      lease.own = false;
      return interrupt.signal.aborted ? INTERRUPTED : 0;
    }
    leaving.stop();
    if (log !== undefined)
      await withServer(context, submission, { found, repeatable: true, wasThere: true }, () => log.done(ended));
    const conclusion = await withServer(context, submission, { found, repeatable: true, wasThere: true }, () =>
      readConclusion(context, answer.run, lease),
    );
    const status = await conclude(context, conclusion);
    return interrupt.signal.aborted ? INTERRUPTED : status;
  } finally {
    leaving?.stop();
    display.end();
    restore();
  }
};

export const define: Define = (command, { act }) =>
  void defineSubmission(command)
    .option(
      "--joblog <file>",
      "write a line for each task that has ended, while the run goes: GNU parallel's columns, then ours",
    )
    .description(
      "Submit tasks, follow them with a progress bar and print a summary. If no server is running, start one for the " +
        "run and stop it at the end. On a terminal, `d` leaves the bar and the run continues (`slipway attach` comes back); " +
        "Ctrl-C cancels the run, twice leaves at once. Exit status: 0 all tasks done, or left with `d`, 1 some failed or were cancelled, 130 interrupted.",
    )
    .option("--dry-run", "submit nothing: check everything and show what would run, as `slipway validate` does")
    .addHelpText(
      "after",
      examples([
        "slipway run -- echo hello",
        "slipway run --array 1-100 --cpus 1 -- ./sim --seed {item}",
        "slipway run --each-line files.txt --retries 2 -- gzip {item}",
        "slipway run examples/montecarlo.yaml",
        "slipway run --joblog log.tsv --each-line files.txt -- gzip {item}",
      ]),
    )
    .action(
      act(async (context, _args, command) => {
        if (await printBackendUsage(context, command)) return 0;
        if (command.opts<{ dryRun?: boolean }>().dryRun === true)
          return (await import("../dry-run.ts")).dryRun(context, await prepareCheck(command, context.home));
        const submission = await prepareSubmission(command, context.home);
        tellOf(context, submission);
        const lease = { own: false };
        const { joblog: file } = command.opts<{ joblog?: string }>();
        const warn = (text: string): void => context.err.line(`warning: ${text}`);
        const joblog = file === undefined ? undefined : await openJoblog(context.client, file, warn);
        try {
          return await submitAndFollow(context, submission, lease, joblog);
        } finally {
          await joblog?.close();
          if (lease.own) await releaseServer(context);
        }
      }),
    );
