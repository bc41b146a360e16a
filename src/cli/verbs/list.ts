import { runsTable } from "../render/runs.ts";
import { parseWhole } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command
    .option("-n, --limit <n>", "how many", "100")
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
            : runsTable(runs, context.style, context.reader.now(), context.out.columns()),
        );
      }),
    );
