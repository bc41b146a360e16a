import { runsTable } from "../render/runs.ts";
import { widthFor } from "../verb.ts";
import { parseWhole } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command
    .option("-n, --limit <n>", "how many", "100")
    .option("--wide", "all columns, also where the terminal is too narrow for them")
    .addHelpText(
      "after",
      examples(["slipway list", "slipway list --json | jq '.[] | select(.state == \"FAILED\") | .id'"]),
    )
    .action(
      act(async (context, _args, command) => {
        const limit = parseWhole("--limit", command.opts<{ limit: string }>().limit, 1, 10_000);
        const runs = await context.reader.runs({ limit });
        context.answer(runs, () =>
          runs.length === 0
            ? "no runs yet"
            : runsTable(runs, context.style, context.reader.now(), widthFor(context, command)),
        );
      }),
    );
