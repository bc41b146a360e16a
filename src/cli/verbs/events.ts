import { eventLine } from "../render/events.ts";
import { parseRun, parseWhole } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

export const define: Define = (command, { act }) =>
  void command
    .option("-f, --follow", "keep printing events as they happen, until interrupted")
    .option("--run <RUN>", "only events of this run")
    .option("--since <seq>", "only events after this sequence number")
    .addHelpText("after", examples(["slipway events --run 3", "slipway events --follow --json"]))
    .action(
      act(async (context, _args, command) => {
        const options = command.opts<{ follow?: boolean; run?: string; since?: string }>();
        // only a server says what happens next
        const client = options.follow === true ? context.client : context.reader;
        const events = client.events({
          follow: options.follow === true,
          run: options.run === undefined ? undefined : parseRun(options.run),
          since:
            options.since === undefined ? undefined : parseWhole("--since", options.since, 0, Number.MAX_SAFE_INTEGER),
          signal: context.out.closed,
          onLost: () => context.note("the connection to the server was lost; trying again"),
        });
        for await (const event of events) {
          if (context.out.closed.aborted) break;
          await context.out.bytes(Buffer.from(`${context.json ? JSON.stringify(event) : eventLine(event)}\n`));
        }
      }),
    );
