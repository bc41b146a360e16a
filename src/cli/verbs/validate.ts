import { dryRun } from "../dry-run.ts";
import { defineSubmission } from "../submission-options.ts";
import { prepareCheck } from "../submission.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void defineSubmission(command)
    .description(
      "Check a run without submitting it: all errors at once, each with its line; else what would run, where, and the first commands. Needs no server. Exit status: 0 valid, 2 not.",
    )
    .addHelpText(
      "after",
      examples(["slipway validate sweep.yaml", "slipway validate --array 1-10 --mem 2G -- ./sim {item}"]),
    )
    .action(act(async (context, _args, command) => dryRun(context, await prepareCheck(command, context.home))));
