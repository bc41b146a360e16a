import { writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { Option } from "commander";
import { ROLES, type Role } from "../../api/caller.ts";
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
      "Tokens of users who share this server, and of people and programs who act for you. With a token in ~/.slipway/remote.json, users can launch jobs and see and cancel their own launches, and nothing else. A token with a role is for your own runs: read looks at everything, submit may also submit, cancel, retry and launch (whoever has it can run commands as you), admin may do all that you can.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway tokens add alice --to /home/alice/.slipway/remote.json",
        "slipway tokens add alice > remote.json",
        "slipway tokens add prometheus --role read --to prometheus.json",
        "slipway tokens remove alice",
      ]),
    );
  subcommand(command, "list", "who has a token").action(
    act(async ({ client, answer }) => {
      const tokens = await client.tokens();
      answer(tokens, () =>
        tokens.length === 0
          ? "no tokens"
          : table(tokens, [
              { title: "NAME", value: (each) => each.user },
              { title: "ROLE", value: (each) => each.role ?? "own launches" },
              { title: "MADE", value: (each) => localTime(each.made) },
            ]),
      );
    }),
  );
  subcommand(command, "add", "make a token; the previous one of that name is no longer accepted")
    .argument("<NAME>", "a user of this machine; with --role any name")
    .addOption(new Option("--role <role>", "what it may do with your runs").choices([...ROLES]))
    .option("--to <file>", "write it there, readable by that user alone (with --role: by you), instead of printing it")
    .action(
      act(async (context, [user], command) => {
        const { to, role } = command.opts<{ to?: string; role?: Role }>();
        const made = await context.client.addToken(user!, role);
        if (to === undefined) return context.printJson(made);
        const write =
          role === undefined ? (work: () => void): void => asThem(user!, work) : (work: () => void): void => work();
        write(() => {
          try {
            writeFileSync(to, `${JSON.stringify(made)}\n`, { mode: 0o600, flag: "wx" });
          } catch (error) {
            const detail = `the new token of ${user} was not written to ${to}: ${(error as Error).message}; make another one`;
            throw new SlipwayError("usage", { detail }, error);
          }
        });
        context.answer({ user, file: to }, () => `the token of ${user} is in ${to}`);
      }),
    );
  subcommand(command, "remove", "revoke a token")
    .argument("<NAME>")
    .action(
      act(async ({ client, answer }, [user]) => {
        await client.removeToken(user!);
        answer({ user }, () => `the token of ${user} is no longer accepted`);
      }),
    );
};
