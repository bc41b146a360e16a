import { writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { SlipwayError } from "../../errors.ts";
import { table } from "../render/table.ts";
import { localTime } from "../render/text.ts";
import { type Define, examples, subcommand } from "../verb.ts";

/**
 * Root writes to a user's directory as that user: where a link of theirs leads elsewhere, the file is made with their
 * rights and not with root's.
 */
const asThem = (user: string, write: () => void): void => {
  if (process.getuid?.() !== 0) return write();
  const numbers = (flag: string): number[] =>
    execFileSync("id", [flag, "--", user], { encoding: "utf8" }).trim().split(" ").map(Number);
  const [[uid = 0], [gid = 0], theirs] = [numbers("-u"), numbers("-g"), numbers("-G")];
  const groups = process.getgroups!();
  process.setgroups!(theirs);
  process.setegid!(gid);
  process.seteuid!(uid);
  try {
    write();
  } finally {
    process.seteuid!(0);
    process.setegid!(0);
    process.setgroups!(groups);
  }
};

export const define: Define = (command, { act }) => {
  command
    .description(
      "Tokens of users who share this server. With a token in ~/.slipway/remote.json, users can launch jobs and see and cancel their own launches, and nothing else.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway tokens add alice --to /home/alice/.slipway/remote.json",
        "slipway tokens add alice > remote.json",
        "slipway tokens remove alice",
      ]),
    );
  subcommand(command, "list", "users who have a token").action(
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
  subcommand(command, "add", "make a token; the user's previous one is no longer accepted")
    .argument("<USER>")
    .option("--to <file>", "write it there, readable by that user alone, instead of printing it")
    .action(
      act(async (context, [user], command) => {
        const { to } = command.opts<{ to?: string }>();
        const made = await context.client.addToken(user!);
        if (to === undefined) return context.printJson(made);
        asThem(user!, () => {
          try {
            writeFileSync(to, `${JSON.stringify(made)}\n`, { mode: 0o600, flag: "wx" });
          } catch (error) {
            const detail = `${user}'s new token was not written to ${to}: ${(error as Error).message}; make another one`;
            throw new SlipwayError("usage", { detail }, error);
          }
        });
        context.answer({ user, file: to }, () => `the token of ${user} is in ${to}`);
      }),
    );
  subcommand(command, "remove", "revoke a token")
    .argument("<USER>")
    .action(
      act(async ({ client, answer }, [user]) => {
        await client.removeToken(user!);
        answer({ user }, () => `the token of ${user} is no longer accepted`);
      }),
    );
};
