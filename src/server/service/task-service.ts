import type { Service } from "../../api/service.ts";
import type { TaskView } from "../../api/schemas.ts";
import type { Run } from "../../core/run.ts";
import { TASK_STATES, Task } from "../../core/states.ts";
import { stateOf } from "../../core/table.ts";
import { SlipwayError } from "../../errors.ts";
import { checkAttempt, runOutput, taskOutput } from "../../logs/logs.ts";
import { attemptTails, stderrTail } from "../../logs/tails.ts";
import { taskView } from "../../views/views.ts";
import type { ServiceContext } from "./context.ts";
import type { JobService } from "./job-service.ts";
import { rowOfTask } from "./run-shelf.ts";
import type { Row } from "../../core/ids.ts";

/** Tasks and their output as the API sees them. */

type TaskService = Pick<Service, "tasks" | "task" | "taskLogs" | "runLogs">;

const codeOf = (name: string): number => {
  const code = (TASK_STATES as readonly string[]).indexOf(name);
  if (code === -1) throw new SlipwayError("bad-request", { detail: `there is no task state ${name}` });
  return code;
};

const rowsOf = (run: Run, code: number | undefined, offset: number, limit: number): number[] => {
  const rows: number[] = [];
  let skip = offset;
  for (let row = 0; row < run.total && rows.length < limit; row += 1) {
    if (code !== undefined && stateOf(run.table, row) !== code) continue;
    if (skip > 0) skip -= 1;
    else rows.push(row);
  }
  return rows;
};

export const createTaskService = (
  { engine: { state }, shelf, logs }: ServiceContext,
  { viewsOf }: Pick<JobService, "viewsOf">,
): TaskService => {
  const listed = async (run: Run, row: Row, jobOf: ReturnType<typeof viewsOf>): Promise<TaskView> => {
    const failed = stateOf(run.table, row) === Task.FAILED;
    return taskView(state, run, row, failed ? await stderrTail(logs, run, row) : null, jobOf(row));
  };

  return {
    tasks: async (id, query) => {
      const run = await shelf.whole(id);
      const code = query.state === undefined ? undefined : codeOf(query.state);
      const jobOf = viewsOf(run);
      return Promise.all(rowsOf(run, code, query.offset, query.limit).map((row) => listed(run, row, jobOf)));
    },
    task: async (id, index) => {
      const run = await shelf.whole(id);
      const row = rowOfTask(run, index);
      const tails = await attemptTails(logs, run, row);
      const lastStderr = [...tails.values()].at(-1)?.lastStderr ?? null;
      const view = taskView(state, run, row, lastStderr, viewsOf(run)(row));
      return { ...view, attempts: view.attempts.map((attempt) => ({ ...attempt, ...tails.get(attempt.n) })) };
    },
    taskLogs: async (id, index, query) => {
      const run = await shelf.whole(id);
      const row = rowOfTask(run, index);
      checkAttempt(run, row, query);
      return taskOutput(logs, run, row, query);
    },
    runLogs: async (id, query) => runOutput(logs, await shelf.whole(id), query),
  };
};
