import { isMap, isPlainTop, plainTask } from "./plain-tasks.ts";
import { RunInput, TaskInput } from "./run-schema.ts";

/** What the schema makes of a run that it accepts; undefined for one that it refuses. */
export const acceptedRun = (value: unknown): RunInput | undefined => {
  if (!isMap(value) || !Array.isArray(value["tasks"])) return undefined;
  const tasks: TaskInput[] = [];
  for (const task of value["tasks"] as readonly unknown[]) {
    const accepted = plainTask(task) ?? TaskInput.safeParse(task).data;
    if (accepted === undefined) return undefined;
    tasks.push(accepted);
  }
  const { tasks: _tasks, ...top } = value;
  if (isPlainTop(top)) return { ...top, tasks };
  const rest = RunInput.safeParse({ ...value, tasks: [] });
  return rest.success ? { ...rest.data, tasks } : undefined;
};
