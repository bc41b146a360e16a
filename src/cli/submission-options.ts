import type { Command } from "commander";
import { nearest } from "../config/nearest.ts";
import { SlipwayError } from "../errors.ts";
import { isRunFile, isSeparated } from "./submission.ts";

const collect = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value];

/** Options may follow a file, but not a command: there they would be the command's own. */
const takeOptionsAfterFile = (command: Command): void => {
  const [file, ...rest] = command.args;
  const raw = (command.parent as (Command & { readonly rawArgs: readonly string[] }) | null)?.rawArgs ?? [];
  if (file === undefined || rest.length === 0 || !rest[0]!.startsWith("-")) return;
  if (!isRunFile(file, isSeparated(raw, command.args), process.cwd())) return;
  const { operands, unknown } = command.parseOptions(rest);
  const [odd] = unknown;
  if (odd !== undefined) {
    const near = nearest(
      odd.replace(/=.*/, ""),
      command.options.map((option) => option.long ?? ""),
    );
    throw new SlipwayError("usage", {
      detail: `unknown option '${odd}'${near === undefined ? "" : `; did you mean ${near}?`}`,
    });
  }
  command.args = [file, ...operands];
};

/** Arguments and options of `run` and `submit`; the same keys exist in a file's tasks. */
export const defineSubmission = (command: Command): Command =>
  command
    .usage("[options] FILE.yaml\n       slipway " + command.name() + " [options] -- COMMAND…")
    .argument("[FILE|COMMAND...]", "a run file, or a command and its arguments")
    .passThroughOptions()
    .hook("preAction", takeOptionsAfterFile)
    .optionsGroup("Tasks:")
    .option("--name <name>", "the run's name")
    .option("--array <range>", "a task for each number: 1-100, 1-100:2, 1-3,7; {item} is the number")
    .option(
      "--each <name=values>",
      "a task for each combination: --each seed=1-10 --each model=a,b; {item.seed}, {item.model}; the last varies fastest",
      collect,
    )
    .option("--each-line <file>", "a task for each line of a file; {item} is the line")
    .option("--colsep <sep>", "what separates the columns of each line: {item.0}, {item.1}; \\t is a tab")
    .option("--from-json <file>", "a task for each value: a JSON array, or one value per line; {item}, {item.key}")
    .option("--stdin", "a task for each line of standard input")
    .optionsGroup("Resources:")
    .option("--cpus <n>", "cores (default 1)")
    .option("--gpus <x>", "GPUs; 0.5 shares one")
    .option(
      "--mem <size>",
      "memory: 500M, 2G; a task that uses more is killed; SLIPWAY_MEM is in bytes; auto: as was learned. Amounts can be formulas: '{item * 10}M + 2G', '{attempt * 4}G'",
    )
    .option("--tmp <size>", "space in its private TMPDIR")
    .option("--resource <name=n>", "any resource that clusters.yaml declares; may be repeated", collect)
    .option("--ranks <n>", "processes that run together, on nodes of one pilot; --mem and --tmp apply to each")
    .option("--nodes <n>", "spread the ranks evenly over this many nodes (default: as few as possible)")
    .option("--cpus-per-rank <n>", "cores of each rank")
    .option("--gpus-per-rank <x>", "GPUs of each rank")
    .option("--rank-launcher <how>", "agents (default): they start each rank; mpiexec or srun: it starts all of them")
    .option("--pin", "bind the task's processes to its own cores")
    .optionsGroup("Time, order and failure:")
    .option("--time-limit <d>", "kill the task after this long: 90, 10m, 1h30m, 02:00:00")
    .option("--time-request <d>", "start only where at least this much time is left; auto: as was learned")
    .option("--priority <n>", "higher first (default 0)")
    .option("--retries <n>", "how many times to retry a failed task (default 0)")
    .option("--mem-retry <n>", "retry a task killed for memory, with more each time; costs no --retries (default 0)")
    .option("--retry-delay <d>", "wait this long before trying again")
    .option("--max-fails <n>", "cancel the rest when more than this many tasks have failed")
    .option("--after <runs>", "start when these runs are done: 3 or 3,4", collect)
    .optionsGroup("Files, and what need not run:")
    .option(
      "--outputs <path>",
      "a file that each task makes, with {item}; where it is up to date, the task is skipped; may be repeated",
      collect,
    )
    .option("--inputs <path>", "a file that each task reads; may be repeated", collect)
    .option(
      "--skip <when>",
      "newer (default): outputs are no older than inputs and the task is the same; present: they exist; content: inputs hold the same; never",
    )
    .option("--force", "run every task, whatever its outputs say")
    .optionsGroup("Environment:")
    .option("--env <k=v>", "a variable for the tasks; may be repeated", collect)
    .option("--export <what>", "variables to pass on: all (default), none, or NAME,NAME")
    .option("--cwd <dir>", "the tasks' directory (default: here)")
    .option("--stdout <path>", "write standard output to a file; the path may use {task} and other placeholders")
    .option("--stderr <path>", "the same for standard error")
    .option("--append", "append to these files instead of replacing them, so that several tasks can share one")
    .optionsGroup("Where:")
    .option("--cluster <name>", "a cluster of clusters.yaml")
    .option("--queue <name>", "one of its queues")
    .option("--via <how>", "pilot (default): pilots run the tasks; job: each is a batch job of its own")
    .option("--local", "on this machine; a task that asks for what is not here runs alone")
    .option(
      "-b, --backend <options>",
      "with --via job: options for its manager, over the task's own; -b -h prints them",
    )
    .option("--stage <name>", "a stage of slipway.yaml, such as train or train.fine")
    .option("--clusters <file>", "the clusters.yaml for the server that this command starts")
    .option("--executor <kind>", "process (default), or null: finishes at once, to measure everything but the work")
    .optionsGroup("Options:");
