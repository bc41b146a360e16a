import type { RetryOptions } from "../../client/index.ts";
import { readRetrySet, type RetrySetInput } from "../../config/retry-set.ts";
import type { Source } from "../../config/source.ts";
import { SlipwayError } from "../../errors.ts";
import { plural } from "../render/text.ts";
import { collectWords, parseStates } from "../state-options.ts";
import { targetsByRun } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

const ENDED = ["DONE", "FAILED", "CANCELED"] as const;

const collect = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value];
const commandLine: Source = { locate: (path) => ({ where: "command line", key: `--set ${String(path[0] ?? "")}` }) };

/** `--set mem=8G`, checked as far as it can be without the run. */
const readSet = (given: readonly string[]): RetrySetInput => {
  const set = Object.fromEntries(
    given.map((text): [string, string] => {
      const at = text.indexOf("=");
      if (at < 1) throw new SlipwayError("usage", { detail: `--set takes NAME=VALUE, not '${text.slice(0, 60)}'` });
      return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
    }),
  );
  readRetrySet(set, commandLine);
  return set;
};

interface Typed {
  readonly failed?: boolean;
  readonly all?: boolean;
  readonly state?: readonly string[];
  readonly name?: readonly string[];
  readonly set?: readonly string[];
}

const clash = (a: string, b: string): never => {
  throw new SlipwayError("usage", { detail: `${a} and ${b} cannot be used together` });
};

const readOptions = ({ failed, all, state, name, set }: Typed, tasks: boolean): RetryOptions => {
  if (failed === true && all === true) clash("--failed", "--all");
  if (state !== undefined && all === true) clash("--state", "--all");
  if (state !== undefined && failed === true) clash("--state", "--failed");
  const narrows = [failed && "--failed", all && "--all", state && "--state", name && "--name"].find(Boolean);
  if (tasks && narrows !== undefined) clash("a task's number", String(narrows));
  return {
    which: all === true ? "all" : "failed",
    ...(state === undefined ? {} : { states: parseStates(state, ENDED, "the state of a task that has ended") }),
    ...(name === undefined ? {} : { names: [...new Set(name)] }),
    ...(set === undefined ? {} : { set: readSet(set) }),
  };
};

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN|RUN.TASK...>", "runs that have ended (3), or tasks of one (3.17)")
    .option("--failed", "the tasks that failed or were cancelled (the default)")
    .option("--all", "all tasks")
    .option("--state <states>", "only tasks in these states: failed, cancelled, done", collectWords)
    .option("--name <names>", "only tasks of these entries of the run's file", collectWords)
    .option(
      "--set <key=value>",
      "for this retry: cpus, gpus, mem, tmp, time-limit, time-request, retries or another resource; may be repeated",
      collect,
    )
    .description(
      "Run tasks again, where and with the environment they had. What was cancelled behind them waits for them again; earlier outcomes stay visible as attempts.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway retry 3",
        "slipway retry 3.17 3.18",
        "slipway retry 3 --state failed --name dock --set mem=8G",
        "slipway retry 3 --all && slipway wait 3",
      ]),
    )
    .action(
      act(async ({ client, answer, note }, targets, command) => {
        const runs = targetsByRun(targets);
        const named = [...runs.values()].some((tasks) => tasks !== undefined);
        const options = readOptions(command.opts<Typed>(), named);
        for (const [run, tasks] of runs) {
          const done = await client.retry(run, { ...options, ...(tasks === undefined ? {} : { tasks }) });
          answer(done, () => `run ${run}: ${plural(done.reopened, "task")} will run again`);
          if (done.blocked !== undefined)
            note(
              `${plural(done.blocked, "task")} cannot run: what comes before failed or was cancelled; retry that too`,
            );
        }
      }),
    );
