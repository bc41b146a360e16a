import type { Command } from "commander";
import { SlipwayError } from "../../errors.ts";
import { tellRedirected } from "../cluster-problems.ts";
import { refuseClusters, refuseOverrides } from "../own-server.ts";
import { count, plural } from "../render/text.ts";
import { defineSubmission } from "../submission-options.ts";
import { isRunFile, prepareSubmission, tellOf } from "../submission.ts";
import { parseRun } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

/** `RUN FILE`, with options anywhere. */
const takeRun = (command: Command): number => {
  const [run, ...rest] = command.args;
  if (run === undefined)
    throw new SlipwayError("usage", { detail: "name the run to resume, then the file: 3 run.yaml" });
  // an operand ends a list of options: those before the file, then those behind it
  const before = command.parseOptions(rest);
  const [file, ...behind] = before.operands;
  const { operands: more, unknown } = command.parseOptions(behind);
  const [odd] = [...before.unknown, ...unknown];
  if (odd !== undefined) throw new SlipwayError("usage", { detail: `unknown option '${odd}'` });
  if (file === undefined || more.length > 0 || !isRunFile(file, false, process.cwd()))
    throw new SlipwayError("usage", { detail: "resume takes a run and one run file: slipway resume 3 run.yaml" });
  command.args = [file];
  return parseRun(run);
};

export const define: Define = (command, { act }) => {
  let resumed = 0;
  command.hook("preAction", (given) => {
    resumed = takeRun(given);
  });
  defineSubmission(command)
    .usage("[options] RUN FILE.yaml")
    .description(
      "Submit a file as a new run in which the tasks that an earlier run has done are skipped: those of equal name, item, command, env and directory, if nothing that they wait for runs again.",
    )
    .addHelpText(
      "after",
      examples(["slipway resume 3 sweep.yaml", "slipway resume 3 sweep.yaml --mem 8G && slipway wait"]),
    )
    .action(
      act(async (context, _args, given) => {
        const submission = await prepareSubmission(given, context.home);
        const { items, namesClusters, project } = submission;
        if (namesClusters) refuseClusters();
        tellOf(context, submission);
        await refuseOverrides(context, project);
        const answer = await context.client.submit({ ...submission.document, resume: resumed }, items);
        tellRedirected(context, answer);
        const { run, total, skipped = 0 } = answer;
        const text = `submitted run ${run}: ${plural(total, "task")}, ${count(skipped)} of them done by run ${resumed}`;
        if (context.json) context.printJson(answer);
        else context.out.line(context.quiet ? String(run) : text);
      }),
    );
};
