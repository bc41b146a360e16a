import { SlipwayError } from "../../errors.ts";
import { plural } from "../render/text.ts";
import { parseRun } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN>", "a run that has ended")
    .option("--failed", "the tasks that failed or were cancelled (the default)")
    .option("--all", "all tasks")
    .description("Run tasks again. Earlier outcomes stay visible as attempts.")
    .addHelpText("after", examples(["slipway retry 3", "slipway retry 3 --all && slipway wait 3"]))
    .action(
      act(async ({ client, answer }, [target], command) => {
        const { failed, all } = command.opts<{ failed?: boolean; all?: boolean }>();
        if (failed === true && all === true)
          throw new SlipwayError("usage", { detail: "--failed and --all cannot be used together" });
        const run = parseRun(target!);
        const done = await client.retry(run, all === true ? "all" : "failed");
        answer(done, () => `run ${run}: ${plural(done.reopened, "task")} will run again`);
      }),
    );
