import { count, plural } from "../render/text.ts";
import { targetsByRun } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN|RUN.TASK...>", "runs (3) or tasks (3.17)")
    .option("--reason <text>", "kept with the tasks, shown by `why`")
    .description("Cancel runs or tasks. Waiting tasks never start; running tasks are stopped.")
    .addHelpText("after", examples(["slipway cancel 3", "slipway cancel 3.17 3.18"]))
    .action(
      act(async ({ client, answer }, targets, command) => {
        const { reason } = command.opts<{ reason?: string }>();
        for (const [run, tasks] of targetsByRun(targets)) {
          const done = await client.cancel(run, {
            ...(tasks === undefined ? {} : { tasks }),
            ...(reason === undefined ? {} : { reason }),
          });
          const ending = done.stopping > 0 ? `, ${count(done.stopping)} more stopping` : "";
          answer(done, () => `run ${run}: ${plural(done.canceled, "task")} cancelled${ending}`);
        }
      }),
    );
