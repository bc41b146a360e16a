import { readFileSync } from "node:fs";
import path from "node:path";
import { Command, CommanderError } from "commander";
import { SlipwayError } from "../errors.ts";
import { createContext, type Globals, type Surroundings } from "./context.ts";
import { homeIn, programFor, withHome } from "./hints.ts";
import { outputTo } from "./output.ts";
import { asSlipwayError, debugText, errorText } from "./render/error.ts";
import { styleFor, wantsColor } from "./render/style.ts";
import { refuseHelpOfUnknown, refuseUnknown, unknownCommand } from "./unknown-command.ts";
import { type Cli, examples, globalsOf, withGlobals } from "./verb.ts";
import { VERBS } from "./verbs.ts";

const interrupted = (): never => process.exit(130);

/** A flag given before `--`, even where the rest of the line could not be understood. */
const hasFlag = (argv: readonly string[], flag: string): boolean => {
  const end = argv.indexOf("--");
  return argv.slice(0, end < 0 ? undefined : end).includes(flag);
};

/** The tree of commands: names and summaries now, everything else of a verb when it is used. */
const buildProgram = (around: Surroundings, exit: (status: number, command: Command) => void): Command => {
  const program: Command = new Command("slipway")
    .description("Slipway launches work onto any HPC cluster, and onto this machine.")
    .usage("[options] COMMAND …")
    .enablePositionalOptions()
    .exitOverride()
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: false })
    .configureOutput({
      writeOut: (text) => around.out.text(text),
      // Help that was not asked for (a noun without its verb) is shown; messages become errors of the table.
      writeErr: (text) => {
        if (text.startsWith("Usage:") && program.opts<Globals>().json !== true) around.err.text(`${text}\n`);
      },
    })
    .addHelpText(
      "after",
      examples([
        "slipway run -- echo hello                     one task on this machine",
        "slipway run --array 1-100 -- ./sim {item}     a hundred",
        "slipway run examples/montecarlo.yaml          a file with tasks that wait for each other",
        "slipway run --help                            all options of this command",
      ]),
    );
  program.option("-V, --version", "print the version").on("option:version", () => {
    const text = readFileSync(path.join(around.root, "package.json"), "utf8");
    around.out.line((JSON.parse(text) as { version: string }).version);
    throw new CommanderError(0, "commander.version", "");
  });
  withGlobals(program);
  refuseUnknown(program);
  refuseHelpOfUnknown(program);

  const cli: Cli = {
    act:
      (handler) =>
      async (...given) => {
        const command = given.at(-1) as Command;
        const context = createContext(around, globalsOf(command));
        try {
          exit((await handler(context, command.args, command)) ?? 0, command);
        } finally {
          context.close();
        }
      },
    everything: async () => {
      const whole = buildProgram(around, exit);
      for (const command of whole.commands) await complete(command);
      return whole;
    },
  };
  const complete = async (command: Command): Promise<void> => {
    const entry = VERBS.find(({ name }) => name === command.name());
    if (entry === undefined) return;
    (await entry.load()).define(command, cli);
    withGlobals(command);
    if (command.commands.length > 0) refuseUnknown(command);
  };
  for (const { name, summary, group } of VERBS)
    program.command(name).summary(summary).description(summary).helpGroup(group);
  /** `slipway help VERB` prints what `slipway VERB --help` does, and never runs what is named. */
  const help = async (words: readonly string[]): Promise<void> => {
    let found = program;
    for (const word of words) {
      const next = found.commands.find((command) => command.name() === word);
      if (next === undefined && found.commands.length > 0) throw unknownCommand(found, word);
      if (next === undefined) break;
      if (found === program) await complete(next);
      found = next;
    }
    found.outputHelp();
  };
  withGlobals(program.command("help [COMMAND...]", { hidden: true }).summary("show help for a command").action(help));
  program
    .command("__complete <KIND> [WORDS...]", { hidden: true })
    .summary("names for a shell's completion")
    .passThroughOptions()
    .allowUnknownOption()
    .action(async (kind: string, words: readonly string[]) => {
      const { completions } = await import("./verbs/complete.ts");
      around.out.text(await completions(kind, words));
    });
  program.hook("preSubcommand", (_program, command) => complete(command));
  return program;
};

const usageError = (error: CommanderError): SlipwayError => {
  const message = error.message.replace(/^error: /, "").replaceAll("\n", " ");
  return new SlipwayError(
    "usage",
    { detail: error.code === "commander.help" ? "no command was given" : message },
    error,
  );
};

/** What decides which code a command needs: its words, its options and whether it reads a file. Nothing of what they say. */
const useOf = (command: Command): string => {
  const words: string[] = [];
  for (let at = command; at.parent !== null; at = at.parent) words.unshift(at.name());
  const options = command.options.map((option) => option.attributeName());
  const given = options.filter((name) => command.getOptionValueSourceWithGlobals(name) === "cli");
  const file = command.args.some((word) => /\.ya?ml$/i.test(word)) ? ["FILE"] : [];
  return [...words, ...given.filter((name) => name !== "home"), ...file].join("+");
};

/**
 * Runs one command line and returns its exit status. `root` is where Slipway is installed. Never throws: an error is
 * printed as text, or as JSON with --json, and becomes the exit status in its row of the table. `used` hears of the use
 * that was made of a verb, when that has done its work.
 */
export const main = async (argv: readonly string[], root: string, used: (use: string) => void): Promise<number> => {
  const around: Surroundings = {
    root,
    out: outputTo(process.stdout),
    err: outputTo(process.stderr),
    env: process.env,
  };
  process.on("SIGINT", interrupted);
  let status = 0;
  try {
    const program = buildProgram(around, (value, command) => {
      status = value;
      used(useOf(command));
    });
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    status = report(error, argv, around);
  }
  await Promise.all([around.out.flushed(), around.err.flushed()]);
  return status === 0 ? Number(process.exitCode ?? 0) : status;
};

/** Prints an error and returns its exit status. */
const report = (error: unknown, argv: readonly string[], { err, env }: Surroundings): number => {
  if (error instanceof CommanderError && error.exitCode === 0) return 0;
  const known = error instanceof CommanderError ? usageError(error) : asSlipwayError(error);
  const style = styleFor(wantsColor(env, err.isTerminal, !hasFlag(argv, "--no-color")));
  const program = programFor(homeIn(argv));
  const { error: shown, ...others } = known.toJSON();
  if (hasFlag(argv, "--json"))
    err.line(JSON.stringify({ error: { ...shown, hint: withHome(shown.hint, program) }, ...others }));
  else err.line(withHome(errorText(known, style), program));
  if (hasFlag(argv, "--debug")) err.line(debugText(error));
  return known.row.exit;
};
