import { statusScreen } from "../render/status.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command.addHelpText("after", examples(["slipway status", "slipway status --json | jq -r .server.url"])).action(
    act(async ({ client, answer, style, out }) => {
      const status = await client.status();
      answer(status, () => statusScreen(status, style, client.now(), out.columns()));
    }),
  );
