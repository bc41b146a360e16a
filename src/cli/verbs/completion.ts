import type { Command } from "commander";
import { SlipwayError } from "../../errors.ts";
import { bashScript, type CandidateKind, type CompletionEntry, fishScript, zshScript } from "../render/completion.ts";
import { type Define, examples } from "../verb.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** What the arguments of commands are, and the values of options. */
const ARGUMENTS: Readonly<Record<string, CandidateKind>> = {
  ...Object.fromEntries(
    ["wait", "attach", "cancel", "retry", "show", "logs", "tasks", "resume"].map((verb) => [verb, "runs"]),
  ),
  why: "things",
  "pilots drain": "pilots",
  "pilots cancel": "pilots",
  "clusters show": "clusters",
  "clusters check": "clusters",
};
const VALUES: Readonly<Record<string, CandidateKind>> = {
  "--cluster": "clusters",
  "--queue": "queues",
  "--run": "runs",
  "--after": "runs",
};

/** A name is that of a group where tasks of a run are looked for. */
const valuesOf = (option: string, words: readonly string[]): CandidateKind | undefined =>
  VALUES[option] ?? (option === "--name" && ARGUMENTS[words.join(" ")] === "runs" ? "groups" : undefined);

/** Every command as `["pilots", "list"]` with its sub-commands and options. */
const entriesOf = (command: Command, words: readonly string[] = []): CompletionEntry[] => [
  {
    words,
    commands: command.commands.map((it) => ({ name: it.name(), summary: it.summary() })),
    options: [...command.options, command.createOption("-h, --help", "help")].map((option) => ({
      name: option.long ?? option.short ?? "",
      summary: option.description,
      takesValue: option.required,
      values: valuesOf(option.long ?? "", words),
    })),
    arguments: ARGUMENTS[words.join(" ")],
  },
  ...command.commands.flatMap((it) => entriesOf(it, [...words, it.name()])),
];

export const define: Define = (command, { act, everything }) =>
  void command
    .argument("<SHELL>", "bash, zsh or fish")
    .description(
      "Print a script that completes commands and options in your shell, and the names that a running server knows: runs, " +
        "clusters, queues, pilots.",
    )
    .addHelpText(
      "after",
      examples([
        'eval "$(slipway completion bash)"                                     in ~/.bashrc',
        'eval "$(slipway completion zsh)"                                      in ~/.zshrc, after compinit',
        "slipway completion fish > ~/.config/fish/completions/slipway.fish",
      ]),
    )
    .action(
      act(async ({ out }, [shell]) => {
        if (!Object.hasOwn(SCRIPTS, shell!))
          throw new SlipwayError("usage", { detail: `'${shell}' is not bash, zsh or fish` });
        out.text(SCRIPTS[shell as keyof typeof SCRIPTS](entriesOf(await everything())));
      }),
    );
