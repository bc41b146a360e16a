import { refuseClusters, refuseOverrides } from "../own-server.ts";
import { plural } from "../render/text.ts";
import { defineSubmission } from "../submission-options.ts";
import { printBackendUsage } from "../backend-usage.ts";
import { tellRedirected } from "../cluster-problems.ts";
import { prepareCheck, prepareSubmission, tellOf } from "../submission.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void defineSubmission(command)
    .description("Submit tasks, print the run's id and return when the run is safe on the server's disk.")
    .option("--dry-run", "submit nothing: check everything and show what would run, as `slipway validate` does")
    .addHelpText(
      "after",
      examples([
        "slipway submit sweep.yaml",
        "slipway submit --array 1-1000 --cpus 2 --mem 500M -- ./sim --seed {item}",
        "id=$(slipway submit --quiet -- ./prepare.sh) && slipway submit --after $id -- ./use.sh",
      ]),
    )
    .action(
      act(async (context, _args, command) => {
        if (await printBackendUsage(context, command)) return undefined;
        if (command.opts<{ dryRun?: boolean }>().dryRun === true)
          return (await import("../dry-run.ts")).dryRun(context, await prepareCheck(command, context.home));
        const submission = await prepareSubmission(command, context.home);
        const { document, items, namesClusters, project } = submission;
        if (namesClusters) refuseClusters();
        tellOf(context, submission);
        await refuseOverrides(context, project);
        const answer = await context.client.submit(document, items);
        const { run, total } = answer;
        tellRedirected(context, answer);
        if (context.json) context.printJson(answer);
        else context.out.line(context.quiet ? String(run) : `submitted run ${run}: ${plural(total, "task")}`);
        return undefined;
      }),
    );
