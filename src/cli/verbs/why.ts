import type { WhyView } from "../../api/schemas.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { withHome } from "../hints.ts";
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

const whyOf = async ({ home, client, reader }: Context, target: string): Promise<WhyView> => {
  const found = await whyOfWrap(home, target);
  if (found !== undefined) return found;
  if (!/^\d+(\.\d+)?$/.test(target)) return client.whyOf(target);
  const { run, task } = parseTarget(target, "a wrapper of this home");
  try {
    return await reader.why(run, task);
  } catch (error) {
    // a number may be something else's
    if (task !== undefined || !(error instanceof SlipwayError && error.code === "no-such-run")) throw error;
    return client.whyOf(target).catch(() => {
      throw error;
    });
  }
};

/** Lines that need no expert: the cause, what is known, what would help. */
const whyText = ({ style, program }: Context, { cause, detail, remedy }: WhyView): string =>
  [
    style.bold(printable(cause)),
    ...[detail, withHome(remedy, program)]
      .filter((text) => text !== "")
      .map((text) =>
        text
          .split("\n")
          .map((line) => `  ${printable(line)}`)
          .join("\n"),
      ),
  ].join("\n");

export const define: Define = (command, { act }) =>
  void command
    .argument(
      "<NAME...>",
      "a run (3), a task (3.17), pilot 4, launch 2, job 1234, a fleet (hpc/cpu), a cluster (hpc), or a Dask cluster: its id or its status file",
    )
    .description(
      "Why it is not running, or why it failed, and what would help. Of a cluster or a fleet: why it has no pilots, or no " +
        "more. A job is named by its manager's id of it. A kind (run, task, pilot, launch, job, fleet, cluster) before a " +
        "name leaves no doubt; a number alone is a run.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway why 3",
        "slipway why 3.17 --json",
        "slipway why pilot 4",
        "slipway why hpc/cpu",
        "slipway why hpc",
        "slipway why dask.json",
      ]),
    )
    .action(
      act(async (context, words) => {
        const why = await whyOf(context, words.join(" "));
        context.answer(why, () => whyText(context, why));
      }),
    );
