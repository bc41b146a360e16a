import { printable } from "../render/text.ts";
import { parseTarget } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN|RUN.TASK>", "a run (3) or one of its tasks (3.17)")
    .description("Why it is not running, or why it failed, and what would help.")
    .addHelpText("after", examples(["slipway why 3", "slipway why 3.17", "slipway why 3.17 --json"]))
    .action(
      act(async ({ client, answer, style }, [target]) => {
        const { run, task } = parseTarget(target!);
        const why = await client.why(run, task);
        answer(why, () =>
          [
            style.bold(printable(why.cause)),
            ...[why.detail, why.remedy]
              .filter((text) => text !== "")
              .map((text) =>
                text
                  .split("\n")
                  .map((line) => `  ${printable(line)}`)
                  .join("\n"),
              ),
          ].join("\n"),
        );
      }),
    );
