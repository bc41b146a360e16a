import { statusScreen } from "../render/status.ts";
import { wrapFleets } from "../render/wraps.ts";
import { type Define, examples, widthFor } from "../verb.ts";
import { askServer, wrapsHere } from "../wraps-here.ts";

export const define: Define = (command, { act }) =>
  void command
    .description(
      "The server, its fleets, pilots and runs, and the Dask clusters of this home. These are shown without a server too; then `server` is null in --json.",
    )
    .option("--wide", "all columns, also where the terminal is too narrow for them")
    .addHelpText("after", examples(["slipway status", "slipway status --json | jq -r .server.url"]))
    .action(
      act(async (context, _args, command) => {
        const { client, answer, style } = context;
        const width = widthFor(context, command);
        const wraps = await wrapsHere(context.home);
        const status = await askServer(context, wraps, () => client.status());
        if (status === undefined)
          answer({ server: null, fleets: [], pilots: [], runs: [], wraps }, () => wrapFleets(wraps, style, width));
        else answer({ ...status, wraps }, () => statusScreen({ ...status, wraps }, style, client.now(), width));
      }),
    );
