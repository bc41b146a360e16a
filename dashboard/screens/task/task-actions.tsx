import type { TaskView } from "../../../src/api/schemas.ts";
import { send } from "../../data/api.ts";
import { role } from "../../data/session.ts";
import { isFinal } from "../../format/progress.ts";
import { confirm } from "../../parts/confirm.tsx";
import { say, sayError } from "../../parts/said.tsx";

/** Cancel one task, or run it again once its run has ended. Both ask first. */
export const TaskActions = ({ run, task, onDone }: { run: number; task: TaskView; onDone: () => void }) => {
  if (role.value === "read") return null;
  const act = async (verb: "cancel" | "retry"): Promise<void> => {
    const yes = await confirm({
      title: verb === "cancel" ? `Cancel task ${task.id}?` : `Run task ${task.id} again?`,
      body:
        verb === "cancel"
          ? "It gets time to end; tasks that wait for it are cancelled, too."
          : "It runs again with the same command, environment and resources; what was cancelled behind it waits for it again.",
      yes: verb === "cancel" ? "Cancel the task" : "Run it again",
      danger: verb === "cancel",
    });
    if (!yes) return;
    await send("POST", `runs/${run}/${verb}`, { tasks: [task.index] });
    say(verb === "cancel" ? `Task ${task.id} is being cancelled.` : `Task ${task.id} will run again.`);
    onDone();
  };
  return isFinal(task.state) ? (
    <button type="button" class="button" onClick={() => void act("retry").catch(sayError)}>
      Retry
    </button>
  ) : (
    <button type="button" class="button danger" onClick={() => void act("cancel").catch(sayError)}>
      Cancel
    </button>
  );
};
