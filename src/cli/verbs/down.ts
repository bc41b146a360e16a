import { isConnectionLost } from "../../client/index.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { isSurelyDead, untilGone } from "../server-end.ts";
import { plural } from "../render/text.ts";
import { type Define, examples } from "../verb.ts";

/** Says what the server still waits for, whenever that changed. */
const waitingNote = (context: Context): (() => Promise<void>) => {
  let last = "";
  return async () => {
    // A server that no longer answers is nearly gone: nothing to say.
    const status = await context.client.status().catch(() => undefined);
    if (status === undefined) return;
    const running = status.runs.reduce((sum, run) => sum + (run.counts["AGENT_EXECUTING"] ?? 0), 0);
    const pilots = status.pilots.filter((pilot) => !["DONE", "CANCELED", "FAILED"].includes(pilot.state)).length;
    const what = [
      ...(running > 0 ? [plural(running, "running task")] : []),
      ...(pilots > 0 ? [plural(pilots, "pilot")] : []),
    ].join(" and ");
    if (what === last || what === "") return;
    last = what;
    context.note(`waiting for ${what} to end`);
  };
};

export const define: Define = (command, { act }) =>
  void command
    .option("--now", "do not wait for running tasks: they run again after the next `up`, at no cost to their retries")
    .description("Let running tasks end, then stop the server. Waiting tasks stay, and continue after the next `up`.")
    .addHelpText("after", examples(["slipway down", "slipway down --now"]))
    .action(
      act(async (context, _args, command) => {
        const { now = false } = command.opts<{ now?: boolean }>();
        const endpoint = await context.client.endpoint();
        try {
          await context.client.stop({ now });
        } catch (error) {
          if (isConnectionLost(error) && isSurelyDead(endpoint))
            throw new SlipwayError("no-server", { home: context.home }, error);
          throw error;
        }
        await untilGone(context.home, endpoint, { tick: waitingNote(context) });
        if (context.json) context.printJson({ state: "stopped", pid: endpoint.pid });
        else if (!context.quiet) context.out.line("the server has stopped");
      }),
    );
