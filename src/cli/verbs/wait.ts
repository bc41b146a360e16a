import type { RunView } from "../../api/schemas.ts";
import { displayFor } from "../display.ts";
import { exitStatus, followRun, summaryOf } from "../follow.ts";
import { parseRun } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN...>", "runs")
    .description("Wait until runs have ended. Exit status 0 when all their tasks are done, else 1.")
    .addHelpText("after", examples(["slipway wait 3", "slipway wait 3 4 5 --quiet && echo all done"]))
    .action(
      act(async (context, targets) => {
        const ids = [...new Set(targets.map(parseRun))];
        const display = displayFor(context);
        const quietly = { ...display, update: () => undefined, end: () => undefined };
        const one = async (id: number): Promise<RunView> => {
          const run = await followRun(context, id, ids.length === 1 ? display : quietly);
          if (context.json) context.printJson(await context.client.run(id));
          else if (!context.quiet) context.out.line(await summaryOf(context, run, context.style));
          return run;
        };
        return exitStatus(await Promise.all(ids.map(one)));
      }),
    );
