import { SlipwayError } from "../../errors.ts";
import { efficiencyScreen } from "../render/efficiency.ts";
import { runScreen } from "../render/runs.ts";
import { taskScreen } from "../render/task.ts";
import { parseTarget } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

const FAILURES_SHOWN = 10;

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN|RUN.TASK>", "a run (3) or one of its tasks (3.17)")
    .description(
      "Show state, resources, what it used, attempts, times, place, exit code and the last lines of each attempt.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway show 3",
        "slipway show 3.17",
        "slipway show 3 --efficiency",
        "slipway show 3 --json | jq .counts",
      ]),
    )
    .option("--efficiency", "compare what the tasks of a run asked for with what they used: cores, memory, time")
    .action(
      act(async ({ reader: client, answer, style, out }, [target], given) => {
        const { run: id, task: index } = parseTarget(target!);
        if (given.opts<{ efficiency?: boolean }>().efficiency === true) {
          if (index !== undefined) throw new SlipwayError("usage", { detail: "--efficiency is of a whole run" });
          const efficiency = await client.efficiency(id);
          answer(efficiency, () => efficiencyScreen(efficiency, out.columns()));
          return;
        }
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
