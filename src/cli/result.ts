import type { RunView } from "../api/schemas.ts";
import type { Context } from "./context.ts";
import { formatSize } from "../core/quantities.ts";
import type { Row } from "../core/ids.ts";

const LARGEST = 64 * 1024;

/** Whether `after` of a group (`dock`, `dock (any)`, `run:3`) names this group. */
const names = (entry: string, name: string): boolean => entry === name || entry.startsWith(`${name} (`);

/**
 * The index of the task whose output is the result of a run: the only one that ran and that nothing waits for, such as
 * the merge at the end of a file. Handlers that were not needed do not count. Undefined when there are several.
 */
export const resultTask = (run: RunView): number | undefined => {
  const groups = run.groups ?? [];
  const index = (row: Row): number => run.numbering.start + row * run.numbering.step;
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

/** What a run leaves to print. */
export interface Result {
  readonly note?: string;
  readonly out: readonly Buffer[];
  readonly err: readonly Buffer[];
}

/** What the result's task wrote, byte by byte; of a run of one task, its standard error too. Large output is only named. */
export const readResult = async (context: Context, run: RunView, index: number): Promise<Result> => {
  const task = await context.client.task(run.id, index);
  const read = async (stream: "stdout" | "stderr"): Promise<Buffer[]> => {
    const pieces: Buffer[] = [];
    for await (const piece of context.client.taskLogs(run.id, index, { stream })) pieces.push(piece);
    return pieces;
  };
  const [bytes, errors] = [task.stdoutBytes ?? 0, task.stderrBytes ?? 0];
  const err = run.total === 1 && task.stderr === null && errors > 0 && errors <= LARGEST ? await read("stderr") : [];
  if (task.stdout !== null) return { note: `its output is in ${task.stdout}`, out: [], err };
  if (bytes > LARGEST) return { note: `its output is ${formatSize(bytes)}: slipway logs ${task.id}`, out: [], err };
  return { out: await read("stdout"), err };
};
