import { pilotsTable } from "./render/status.ts";
import { type Define, examples, subcommand } from "./verb.ts";

export const define: Define = (command, { act }) => {
  command.addHelpText("after", examples(["slipway pilots list"]));
  subcommand(command, "list", "pilots, with their agents").action(
    act(async ({ client, answer, style, out }) => {
      const pilots = await client.pilots();
      answer(pilots, () => (pilots.length === 0 ? "no pilots" : pilotsTable(pilots, style, Date.now(), out.columns())));
    }),
  );
};
