import { Command } from "commander";
import { expect, test } from "vitest";
import { bashScript, type CompletionEntry, fishScript, zshScript } from "../../../src/cli/render/completion.ts";
import { withGlobals } from "../../../src/cli/verb.ts";
import { VERBS } from "../../../src/cli/verbs.ts";

const defined = async (name: string): Promise<Command> => {
  const program = new Command("slipway").enablePositionalOptions();
  const command = program.command(name);
  const { define } = await VERBS.find((entry) => entry.name === name)!.load();
  define(command, { act: () => async () => undefined, everything: async () => program });
  return withGlobals(command);
};

test("the commands of the contract are there", () => {
  expect(VERBS.map(({ name }) => name).toSorted()).toEqual(
    "agent attach bench cancel clusters completion down events jobs journal launch list logs open pilots report resume retry run show status submit sudoers tasks tokens top up validate wait why wrap".split(
      " ",
    ),
  );
});

test.for(VERBS.map(({ name }) => name))("%s has a description, examples and the global options", async (name) => {
  const command = await defined(name);
  let help = "";
  command.configureOutput({ writeOut: (text) => (help += text), getOutHelpWidth: () => 100 }).outputHelp();
  expect(help).toMatch(/^Usage: slipway /);
  expect(help).toContain("\nGlobal options:\n");
  expect(help).toContain("\nExamples:\n  ");
  for (const line of help.split("\n").filter((text) => text.startsWith("  slipway "))) expect(line).toContain(name);
});

test("run and submit take every option of the contract", async () => {
  const contract =
    "name array each-line from-json stdin cpus gpus mem tmp resource nodes ranks cpus-per-rank gpus-per-rank time-limit " +
    "time-request priority retries retry-delay max-fails after env cwd stdout stderr cluster queue via local backend " +
    "export executor pin clusters home quiet color json debug";
  for (const name of ["run", "submit"]) {
    const options = new Set((await defined(name)).options.map((option) => option.name().replace(/^no-/, "")));
    expect(contract.split(" ").filter((option) => !options.has(option))).toEqual([]);
  }
});

const entries: CompletionEntry[] = [
  {
    words: [],
    commands: [{ name: "pilots", summary: "the user's pilots" }],
    options: [{ name: "--home", summary: "where", takesValue: true }],
  },
  { words: ["pilots"], commands: [{ name: "list", summary: "all" }], options: [] },
  { words: ["pilots", "list"], commands: [], options: [{ name: "--json", summary: "JSON", takesValue: false }] },
];

test("completion knows what can follow", () => {
  const bash = bashScript(entries);
  expect(bash).toContain("'pilots list') command='pilots list' ;;");
  expect(bash).toContain("'') found='pilots --home' ;;");
  expect(bash).toContain("complete -o filenames -F _slipway slipway");
  expect(zshScript(entries)).toContain("compdef _slipway slipway");
  expect(fishScript(entries).split("\n")).toEqual([
    "complete -c slipway -f -n 'not __fish_seen_subcommand_from pilots' -a pilots -d 'the user\\'s pilots'",
    "complete -c slipway -n 'not __fish_seen_subcommand_from pilots' -l home -r -d 'where'",
    "complete -c slipway -f -n '__fish_seen_subcommand_from pilots' -a list -d 'all'",
    "complete -c slipway -n '__fish_seen_subcommand_from pilots; and __fish_seen_subcommand_from list' -l json -d 'JSON'",
    "",
  ]);
});
