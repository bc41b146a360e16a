import type { Command } from "commander";
import { SlipwayError } from "../../errors.ts";
import { bashScript, type CompletionEntry, fishScript, zshScript } from "../render/completion.ts";
import { type Define, examples } from "../verb.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** Every command as `["pilots", "list"]` with its sub-commands and options. */
const entriesOf = (command: Command, words: readonly string[] = []): CompletionEntry[] => [
  {
    words,
    commands: command.commands.map((it) => ({ name: it.name(), summary: it.summary() })),
    options: [...command.options, command.createOption("-h, --help", "help")].map((option) => ({
      name: option.long ?? option.short ?? "",
      summary: option.description,
      takesValue: option.required,
    })),
  },
  ...command.commands.flatMap((it) => entriesOf(it, [...words, it.name()])),
];

export const define: Define = (command, { act, everything }) =>
  void command
    .argument("<SHELL>", "bash, zsh or fish")
    .description("Print a script that completes commands and options in your shell.")
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
