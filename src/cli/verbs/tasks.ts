import type { TaskRowView } from "../../api/task-table.ts";
import type { TaskRowsQuery } from "../../client/index.ts";
import { nearest } from "../../config/nearest.ts";
import { parseDuration } from "../../core/quantities.ts";
import { TASK_STATES } from "../../core/states.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { layout } from "../render/table.ts";
import { csvCell, SHOWN, type TaskColumn, type TaskColumnName, taskColumns } from "../render/task-rows.ts";
import { PLAIN } from "../render/style.ts";
import { collectWords, parseStates } from "../state-options.ts";
import { parseRun, parseWhole } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

interface Typed {
  readonly state?: readonly string[];
  readonly name?: readonly string[];
  readonly host?: readonly string[];
  readonly exitCode?: readonly string[];
  readonly longer?: string;
  readonly lost?: boolean;
  readonly sort: string;
  readonly reverse?: boolean;
  readonly limit?: string;
  readonly columns?: readonly string[];
  readonly csv?: boolean;
  readonly wide?: boolean;
}

const MOST_LIMIT = 10 ** 9;

const secondsOf = (text: string): number => {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new SlipwayError("usage", { detail: `--longer: ${(error as Error).message}` }, error);
  }
};

const sortOf = (text: string): "index" | "duration" => {
  if (text === "index" || text === "duration") return text;
  throw new SlipwayError("usage", { detail: `--sort: '${text.slice(0, 60)}' is neither index nor duration` });
};

const queryOf = (typed: Typed): TaskRowsQuery => ({
  ...(typed.state && { states: parseStates(typed.state, TASK_STATES, "the state of a task") }),
  ...(typed.name && { names: typed.name }),
  ...(typed.host && { hosts: typed.host }),
  ...(typed.exitCode && { exitCodes: typed.exitCode.map((code) => parseWhole("--exit-code", code.trim(), 0, 255)) }),
  ...(typed.longer !== undefined && { longer: secondsOf(typed.longer) }),
  ...(typed.limit !== undefined && { limit: parseWhole("--limit", typed.limit, 1, MOST_LIMIT) }),
  lost: typed.lost === true,
  sort: sortOf(typed.sort),
  reverse: typed.reverse === true,
});

const columnsFor = (typed: Typed, style: Context["style"], all: boolean): [TaskColumnName, TaskColumn][] => {
  const known: Readonly<Record<TaskColumnName, TaskColumn>> = taskColumns(style);
  const names = Object.keys(known) as TaskColumnName[];
  if (typed.columns === undefined) return (all ? names : SHOWN).map((name) => [name, known[name]]);
  return typed.columns.map((text) => {
    const name = names.find((each) => each === text.trim().toLowerCase());
    if (name !== undefined) return [name, known[name]];
    const near = nearest(text.trim().toLowerCase(), names);
    const hint = near === undefined ? `there are ${names.join(", ")}` : `did you mean ${near}?`;
    throw new SlipwayError("usage", { detail: `--columns: there is no column '${text.slice(0, 60)}'; ${hint}` });
  });
};

/** Rows that are laid out and written together. */
const TOGETHER = 500;

async function* inPieces(rows: AsyncIterable<TaskRowView>): AsyncGenerator<TaskRowView[]> {
  let piece: TaskRowView[] = [];
  for await (const row of rows) {
    if (piece.push(row) < TOGETHER) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

/** Makes text of rows, piece by piece; the first piece brings the head. */
type Writer = (rows: readonly TaskRowView[]) => string[];

const writerOf = (context: Context, typed: Typed): Writer => {
  if (context.json) return (rows) => rows.map((row) => JSON.stringify(row));
  let first = true;
  if (typed.csv === true) {
    const columns = columnsFor(typed, PLAIN, true);
    return (rows) => {
      const lines = rows.map((row) => columns.map(([, { raw }]) => csvCell(raw(row))).join(","));
      const head = first ? [columns.map(([name]) => name).join(",")] : [];
      first = false;
      return [...head, ...lines];
    };
  }
  const columns = columnsFor(typed, context.style, false).map(([, column]) => column);
  const width = typed.wide === true ? undefined : context.out.columns();
  let laid: ReturnType<typeof layout<TaskRowView>> | undefined;
  return (rows) => {
    const head = laid === undefined ? [(laid = layout(rows, columns, width)).head] : [];
    return [...head, ...laid.lines(rows)];
  };
};

const print = async (context: Context, run: number, typed: Typed): Promise<void> => {
  const { reader: client, out } = context;
  const write = writerOf(context, typed);
  const rows = client.taskRows(run, { ...queryOf(typed), signal: out.closed });
  let any = false;
  try {
    for await (const piece of inPieces(rows)) {
      any = true;
      await out.bytes(Buffer.from(`${write(piece).join("\n")}\n`));
    }
  } catch (error) {
    // The reader of our output has left (`| head`): so do we.
    if (!out.closed.aborted) throw error;
  }
  if (any) return;
  if (typed.csv === true && !context.json) out.line(write([]).join("\n"));
  else context.note("no such tasks");
};

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN>", "a run")
    .description(
      "A table of a run's tasks, each with its latest attempt. With --json one document per line; with --csv all columns, " +
        "seconds and bytes as plain numbers.",
    )
    .option("--state <states>", "only tasks in these states, such as running or failed,cancelled", collectWords)
    .option("--name <names>", "only tasks of these entries of the run's file", collectWords)
    .option("--host <hosts>", "only tasks whose latest attempt is, or was, on these hosts", collectWords)
    .option("--longer <duration>", "only tasks that took, or have been running for, at least this long, such as 10m")
    .option("--exit-code <codes>", "only tasks that ended with these exit codes", collectWords)
    .option("--lost", "only tasks with an attempt that was lost and run again")
    .option("--sort <order>", "index or duration; tasks that have not begun come last", "index")
    .option("--reverse", "the other way round: the longest first")
    .option("-n, --limit <n>", "how many")
    .option(
      "--columns <names>",
      `which columns, in this order: ${Object.keys(taskColumns(PLAIN)).join(", ")}`,
      collectWords,
    )
    .option("--csv", "comma-separated values, with a head")
    .option("--wide", "all columns, also where the terminal is too narrow for them")
    .addHelpText(
      "after",
      examples([
        "slipway tasks 3",
        "slipway tasks 3 --state failed --name dock",
        "slipway tasks 3 --sort duration --reverse --limit 20",
        "slipway tasks 3 --state running --longer 10m --columns id,host,time,command",
        "slipway tasks 3 --csv > tasks.csv",
        "slipway tasks 3 --json | jq -r 'select(.exitCode == 3) | .item'",
      ]),
    )
    .action(
      act(async (context, [run], given) => {
        const typed = given.opts<Typed>();
        if (typed.csv === true && context.json)
          throw new SlipwayError("usage", { detail: "--csv and --json cannot be used together" });
        await print(context, parseRun(run!), typed);
      }),
    );
