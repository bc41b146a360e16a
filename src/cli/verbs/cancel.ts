import { count, plural } from "../render/text.ts";
import { parseTarget } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

/** Tasks per run, in the order given; a run named whole is not narrowed by its own tasks. */
const byRun = (targets: readonly string[]): Map<number, number[] | undefined> => {
  const runs = new Map<number, number[] | undefined>();
  for (const { run, task } of targets.map((text) => parseTarget(text))) {
    const known = runs.get(run);
    if (task === undefined) runs.set(run, undefined);
    else if (known !== undefined) known.push(task);
    else if (!runs.has(run)) runs.set(run, [task]);
  }
  return runs;
};

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN|RUN.TASK...>", "runs (3) or tasks (3.17)")
    .option("--reason <text>", "kept with the tasks, shown by `why`")
    .description("Cancel runs or tasks. Waiting tasks never start; running tasks are stopped.")
    .addHelpText("after", examples(["slipway cancel 3", "slipway cancel 3.17 3.18"]))
    .action(
      act(async ({ client, answer }, targets, command) => {
        const { reason } = command.opts<{ reason?: string }>();
        for (const [run, tasks] of byRun(targets)) {
          const done = await client.cancel(run, {
            ...(tasks === undefined ? {} : { tasks }),
            ...(reason === undefined ? {} : { reason }),
          });
          const ending = done.stopping > 0 ? `, ${count(done.stopping)} more stopping` : "";
          answer(done, () => `run ${run}: ${plural(done.canceled, "task")} cancelled${ending}`);
        }
      }),
    );
