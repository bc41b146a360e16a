import { displayFor } from "../display.ts";
import { exitStatus, followRun, summaryOf } from "../follow.ts";
import { offerLeaving, tellLeft } from "../leaving.ts";
import { parseRun } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN>", "a run")
    .description(
      "Follow a run with the progress bar, as `run` does. `d` and Ctrl-C leave it and it continues. Exit status: 0 all " +
        "tasks done, or left with `d`; 1 some failed or were cancelled; 130 left with Ctrl-C.",
    )
    .addHelpText("after", examples(["slipway attach 3"]))
    .action(
      act(async (context, [target]) => {
        const id = parseRun(target!);
        const display = displayFor(context);
        const leaving = offerLeaving(context, display, "so does Ctrl-C");
        try {
          const run = await followRun(context, id, display, { signal: leaving.signal });
          if (run === undefined) {
            tellLeft(context, id);
            return 0;
          }
          if (context.json) context.printJson(await context.client.run(id));
          else if (!context.quiet) context.out.line(await summaryOf(context, run, context.style));
          return exitStatus([run]);
        } finally {
          leaving.stop();
        }
      }),
    );
