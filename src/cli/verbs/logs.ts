import type { OutputLostView } from "../../api/schemas.ts";
import type { Client, TaskLogOptions } from "../../client/index.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { lineJoiner, type TaskLine } from "../log-lines.ts";
import { lostLine, moreLost } from "../render/output-lost.ts";
import { parseTarget, parseWhole } from "../targets.ts";
import { type Define, examples } from "../verb.ts";
import type { RunId } from "../../core/ids.ts";

const NEWLINE = Buffer.from("\n");
const MOST_ATTEMPTS = 65_535;

interface Given {
  readonly follow?: boolean;
  readonly stderr?: boolean;
  readonly attempt?: string;
}

/** Writes lines as JSON, or after their task's id. */
const lineWriter =
  (context: Context, stream: "stdout" | "stderr") =>
  async (lines: readonly TaskLine[]): Promise<void> => {
    if (lines.length === 0) return;
    const parts = lines.flatMap(({ task, line }) =>
      context.json
        ? [Buffer.from(`${JSON.stringify({ task, stream, line: line.toString("utf8") })}\n`)]
        : [Buffer.from(`${context.style.dim(`${task}:`)} `), line, NEWLINE],
    );
    await context.out.bytes(Buffer.concat(parts));
  };

/** Tasks named; the others are only counted. */
const MOST_NAMED = 5;

/** What was not kept of the stream shown: reported after it, and in the exit status. */
const lossReport = (context: Context, stream: "stdout" | "stderr") => {
  const lines: string[] = [];
  let total = 0;
  return {
    add: (task: string, outputLost: OutputLostView | null | undefined): void => {
      // an earlier version of the server does not say
      if (!outputLost || outputLost[stream] === 0) return;
      total += 1;
      if (context.json) context.printJson({ task, stream, outputLost });
      else if (lines.length < MOST_NAMED) lines.push(lostLine(task, outputLost[stream], outputLost));
    },
    end: (): number => {
      for (const line of lines) context.err.line(line);
      if (lines.length > 0 && total > lines.length) context.err.line(moreLost(total - lines.length));
      return total === 0 ? 0 : 1;
    },
  };
};

/** Only a server says what comes next. */
const clientFor = ({ client, reader }: Context, { follow = false }: TaskLogOptions): Client =>
  follow ? client : reader;

const taskOutput = async (context: Context, run: RunId, index: number, options: TaskLogOptions): Promise<number> => {
  const report = lossReport(context, options.stream ?? "stdout");
  await taskLines(context, run, index, options);
  const { attempts, outputLost } = await clientFor(context, options).task(run, index);
  const { attempt } = options;
  report.add(
    `${run}.${index}`,
    attempt === undefined ? outputLost : attempts.find(({ n }) => n === attempt)?.outputLost,
  );
  return report.end();
};

const taskLines = async (context: Context, run: RunId, index: number, options: TaskLogOptions): Promise<void> => {
  const pieces = clientFor(context, options).taskLogs(run, index, options);
  if (!context.json) {
    for await (const piece of pieces) await context.out.bytes(piece);
    return;
  }
  const write = lineWriter(context, options.stream ?? "stdout");
  const lines = lineJoiner();
  for await (const piece of pieces) await write(lines.add(`${run}.${index}`, piece));
  await write(lines.end());
};

const runOutput = async (context: Context, id: number, options: TaskLogOptions): Promise<number> => {
  const { total, numbering } = await clientFor(context, options).run(id);
  if (total === 1) return taskOutput(context, id, numbering.start, options);
  if (options.attempt !== undefined)
    throw new SlipwayError("usage", {
      detail: `--attempt names an attempt of one task: slipway logs ${id}.${numbering.start} --attempt ${options.attempt}`,
    });
  const write = lineWriter(context, options.stream ?? "stdout");
  const lines = lineJoiner();
  const report = lossReport(context, options.stream ?? "stdout");
  let current: string | undefined;
  for await (const { task, data, outputLost } of clientFor(context, options).logs(id, options)) {
    // A run's output comes task by task: a last line without its newline belongs before the next task.
    if (task !== current && current !== undefined) await write(lines.end());
    current = task;
    await write(lines.add(task, data));
    if (outputLost === undefined) continue;
    await write(lines.end());
    report.add(task, outputLost);
  }
  await write(lines.end());
  return report.end();
};

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN|RUN.TASK>", "a run (3) or one of its tasks (3.17)")
    .option("-f, --follow", "keep printing until the tasks have ended")
    .option("--stderr", "standard error instead of standard output")
    .option("--attempt <n>", "what one task wrote in this attempt, instead of its last")
    .description(
      "Print what tasks wrote: one task byte for byte; a run line by line, each line after its task's id. With --json one " +
        "document per line: {task, stream, line}. Where some output was not kept (the disk was full, or it went over a " +
        "limit), a line in its place says how much is missing. Exit status: 0 all of it was kept, 1 some was not.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway logs 3.17",
        "slipway logs 3 -f",
        "slipway logs 3.17 --stderr",
        "slipway logs 3.17 --attempt 1",
      ]),
    )
    .action(
      act(async (context, [target], command) => {
        const { follow = false, stderr = false, ...given } = command.opts<Given>();
        const attempt =
          given.attempt === undefined ? undefined : parseWhole("--attempt", given.attempt, 1, MOST_ATTEMPTS);
        const { run, task } = parseTarget(target!);
        const { closed } = context.out;
        const stream = stderr ? "stderr" : "stdout";
        const options: TaskLogOptions = { follow, stream, attempt, signal: closed };
        try {
          return await (task === undefined
            ? runOutput(context, run, options)
            : taskOutput(context, run, task, options));
        } catch (error) {
          // The reader of our output has left (`| head`): so do we.
          if (!closed.aborted) throw error;
          return 0;
        }
      }),
    );
