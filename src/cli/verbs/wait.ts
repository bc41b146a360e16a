import type { RunView } from "../../api/schemas.ts";
import { SlipwayError } from "../../errors.ts";
import { displayFor } from "../display.ts";
import { exitStatus, followRun, summaryOf } from "../follow.ts";
import { openJoblog } from "../joblog.ts";
import { parseRun } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN...>", "runs")
    .option(
      "--joblog <file>",
      "write a line for each task of the run, those that have ended first: GNU parallel's columns, then ours",
    )
    .description("Wait until runs have ended. Exit status 0 when all their tasks are done, else 1.")
    .addHelpText(
      "after",
      examples(["slipway wait 3", "slipway wait 3 4 5 --quiet && echo all done", "slipway wait 3 --joblog log.tsv"]),
    )
    .action(
      act(async (context, targets, command) => {
        const ids = [...new Set(targets.map(parseRun))];
        const { joblog: file } = command.opts<{ joblog?: string }>();
        if (file !== undefined && ids.length > 1)
          throw new SlipwayError("usage", { detail: "--joblog takes one run: each has a file of its own" });
        if (file !== undefined) await context.client.run(ids[0]!);
        const warn = (text: string): void => context.err.line(`warning: ${text}`);
        const joblog = file === undefined ? undefined : await openJoblog(context.client, file, warn);
        const display = displayFor(context);
        // of several runs no bar, but lines that say why one waits
        const quietly = () => ({ ...displayFor(context, { lines: true }), update: () => undefined });
        const one = async (id: number): Promise<RunView> => {
          const log = joblog?.follow(id);
          const run = (await followRun(context, id, ids.length === 1 ? display : quietly()))!;
          await log?.done(run);
          if (context.json) context.printJson(await context.client.run(id));
          else if (!context.quiet) context.out.line(await summaryOf(context, run, context.style));
          return run;
        };
        return exitStatus(await Promise.all(ids.map(one)));
      }),
    );
