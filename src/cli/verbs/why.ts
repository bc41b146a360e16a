import type { WhyView } from "../../api/schemas.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { printable } from "../render/text.ts";
import { parseTarget } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

/** A wrapper by its id, the beginning of one that is no number, or its status file. */
const whyOfWrap = async (home: string, name: string): Promise<WhyView | undefined> => {
  // a number is a run, unless all of an id happens to be digits
  if (/^\d+(\.\d+)?$/.test(name) && name.length !== 8) return undefined;
  const { findWrap } = await import("../../wrap/holder/registry.ts");
  const { wrapView } = await import("../../wrap/report/view.ts");
  try {
    return wrapView(await findWrap(home, name)).why;
  } catch (error) {
    if (error instanceof SlipwayError && error.code === "no-such-wrap") return undefined;
    throw error;
  }
};

const whyOf = async ({ home, reader }: Context, target: string): Promise<WhyView> => {
  const found = await whyOfWrap(home, target);
  if (found !== undefined) return found;
  const { run, task } = parseTarget(target, "a wrapper of this home");
  return reader.why(run, task);
};

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN|RUN.TASK|WRAP>", "a run (3), one of its tasks (3.17), or a Dask cluster: its id or its status file")
    .description(
      "Why it is not running, or why it failed, and what would help. Of a Dask cluster: why it has no workers, or no more.",
    )
    .addHelpText(
      "after",
      examples(["slipway why 3", "slipway why 3.17", "slipway why 3.17 --json", "slipway why dask.json"]),
    )
    .action(
      act(async (context, [target]) => {
        const why = await whyOf(context, target!);
        context.answer(why, () =>
          [
            context.style.bold(printable(why.cause)),
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
