import type { RunView } from "../api/schemas.ts";
import type { Context } from "./context.ts";
import { formatSize } from "../core/quantities.ts";

const LARGEST = 64 * 1024;

/** Whether `after` of a group (`dock`, `dock (any)`, `run:3`) names this group. */
const names = (entry: string, name: string): boolean => entry === name || entry.startsWith(`${name} (`);

/**
 * The index of the task whose output is the result of a run: the only one that ran and that nothing waits for, such as
 * the merge at the end of a file. Handlers that were not needed do not count. Undefined when there are several.
 */
export const resultTask = (run: RunView): number | undefined => {
  const groups = run.groups ?? [];
  const index = (row: number): number => run.numbering.start + row * run.numbering.step;
  if (groups.length === 0) return run.total === 1 ? index(0) : undefined;
  // Of a run with very many groups the server shows only the first.
  if (groups.reduce((sum, group) => sum + group.total, 0) !== run.total) return undefined;
  let found: number | undefined;
  let row = 0;
  for (const group of groups) {
    const first = row;
    row += group.total;
    if (groups.some(({ after }) => after.some((entry) => names(entry, group.name)))) continue;
    if ((group.counts["CANCELED"] ?? 0) === group.total) continue;
    if (group.total !== 1 || found !== undefined) return undefined;
    found = index(first);
  }
  return found;
};

/** Prints what the result's task wrote, byte by byte; of a run of one task, its standard error too. */
export const printResult = async (context: Context, run: RunView, index: number): Promise<void> => {
  const task = await context.client.task(run.id, index);
  if (task.stdout !== null) context.note(`its output is in ${task.stdout}`);
  else if ((task.stdoutBytes ?? 0) > LARGEST)
    context.note(`its output has ${formatSize(task.stdoutBytes ?? 0)}: slipway logs ${task.id}`);
  else for await (const piece of context.client.taskLogs(run.id, index)) await context.out.bytes(piece);
  const errors = task.stderrBytes ?? 0;
  if (run.total !== 1 || task.stderr !== null || errors === 0 || errors > LARGEST) return;
  for await (const piece of context.client.taskLogs(run.id, index, { stream: "stderr" }))
    await context.err.bytes(piece);
};
