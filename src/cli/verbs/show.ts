import { runScreen } from "../render/runs.ts";
import { taskScreen } from "../render/task.ts";
import { parseTarget } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

const FAILURES_SHOWN = 10;

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN|RUN.TASK>", "a run (3) or one of its tasks (3.17)")
    .description("Show state, resources, peak memory, attempts, times, place, exit code and the last lines of stderr.")
    .addHelpText("after", examples(["slipway show 3", "slipway show 3.17", "slipway show 3 --json | jq .counts"]))
    .action(
      act(async ({ client, answer, style, out }, [target]) => {
        const { run: id, task: index } = parseTarget(target!);
        if (index !== undefined) {
          const task = await client.task(id, index);
          answer(task, () => taskScreen(task, style, client.now(), out.columns()));
          return;
        }
        const run = await client.run(id);
        const failed = (run.counts["FAILED"] ?? 0) > 0;
        const failures = failed ? await client.tasks(id, { state: "FAILED", limit: FAILURES_SHOWN }) : [];
        answer(run, () => runScreen(run, failures, style, client.now(), out.columns()));
      }),
    );
