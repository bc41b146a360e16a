import type { Command } from "commander";
import { nearest } from "../config/nearest.ts";
import { SlipwayError } from "../errors.ts";

/** `pilots lits`, without the program's own name. */
const wordsOf = (command: Command, name: string): string => {
  const words = [name];
  for (let at: Command | null = command; at !== null && at.parent !== null; at = at.parent) words.unshift(at.name());
  return words.join(" ");
};

/** The word after a command that is not one of its own commands. */
export const unknownCommand = (command: Command, name: string): SlipwayError => {
  const near = nearest(
    name,
    command.commands.map((child) => child.name()),
  );
  const suggestion = near === undefined ? "" : `; did you mean '${wordsOf(command, near)}'?`;
  return new SlipwayError("usage", { detail: `unknown command '${wordsOf(command, name)}'${suggestion}` });
};

/** Makes an unknown word after a command that has commands of its own an error that names the nearest of them. */
export const refuseUnknown = (command: Command): void => {
  command.on("command:*", ([name]: [string]) => {
    throw unknownCommand(command, name);
  });
};

/** The same for help: the help of everything does not answer a question about a command that does not exist. */
export const refuseHelpOfUnknown = (program: Command): void => {
  program.addHelpText("beforeAll", ({ command, error }) => {
    const name = command.args.find((word) => !word.startsWith("-"));
    const isKnown = command.commands.some((child) => child.name() === name);
    const isArgument = command.registeredArguments.length > 0;
    if (!error && name !== undefined && command.commands.length > 0 && !isKnown && !isArgument)
      throw unknownCommand(command, name);
    return "";
  });
};
