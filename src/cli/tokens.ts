import { chownSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { table } from "./render/table.ts";
import { localTime } from "./render/text.ts";
import { type Define, examples, subcommand } from "./verb.ts";

export const define: Define = (command, { act }) => {
  command
    .description(
      "Tokens of users who share this server. With theirs as ~/.slipway/remote.json users launch, see and cancel their own launches, and nothing else.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway tokens add alice --to /home/alice/.slipway/remote.json",
        "slipway tokens add alice > remote.json",
        "slipway tokens remove alice",
      ]),
    );
  subcommand(command, "list", "users who have one").action(
    act(async ({ client, answer }) => {
      const tokens = await client.tokens();
      answer(tokens, () =>
        tokens.length === 0
          ? "no tokens"
          : table(tokens, [
              { title: "USER", value: (each) => each.user },
              { title: "MADE", value: (each) => localTime(each.made) },
            ]),
      );
    }),
  );
  subcommand(command, "add", "make one; a token that the user had before is accepted no more")
    .argument("<USER>")
    .option("--to <file>", "write it there, readable by that user alone, instead of printing it")
    .action(
      act(async (context, [user], command) => {
        const { to } = command.opts<{ to?: string }>();
        const made = await context.client.addToken(user!);
        if (to === undefined) return context.printJson(made);
        writeFileSync(to, `${JSON.stringify(made)}\n`, { mode: 0o600, flag: "wx" });
        if (process.getuid?.() === 0) {
          const ids = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "--", user!], { encoding: "utf8" })));
          chownSync(to, ids[0]!, ids[1]!);
        }
        context.answer({ user, file: to }, () => `the token of ${user} is in ${to}`);
      }),
    );
  subcommand(command, "remove", "take one back")
    .argument("<USER>")
    .action(
      act(async ({ client, answer }, [user]) => {
        await client.removeToken(user!);
        answer({ user }, () => `the token of ${user} is accepted no more`);
      }),
    );
};
