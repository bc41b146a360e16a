import type { RunView } from "../../../src/api/schemas.ts";
import { send } from "../../data/api.ts";
import { role } from "../../data/session.ts";
import { count, plural } from "../../format/numbers.ts";
import { endedOf, isFinal } from "../../format/progress.ts";
import { confirm } from "../../parts/confirm.tsx";
import { say, sayError } from "../../parts/said.tsx";

/** Cancel what has not ended, run again what failed. Both ask first. */

const cancel = async (run: RunView): Promise<void> => {
  const open = run.total - endedOf(run.counts);
  const yes = await confirm({
    title: `Cancel run ${run.id}?`,
    body: `${plural(open, "task")} will be cancelled; what runs gets time to end. What is done stays done.`,
    yes: "Cancel the run",
    danger: true,
  });
  if (!yes) return;
  const { canceled, stopping } = await send<{ canceled: number; stopping: number }>("POST", `runs/${run.id}/cancel`, {
    reason: "cancelled from the page",
  });
  say(`${plural(canceled, "task")} cancelled${stopping > 0 ? `, ${count(stopping)} still stopping` : ""}.`);
};

const retry = async (run: RunView): Promise<void> => {
  const again = (run.counts["FAILED"] ?? 0) + (run.counts["CANCELED"] ?? 0) - run.unneeded;
  const yes = await confirm({
    title: `Run ${plural(again, "task")} of run ${run.id} again?`,
    body: "Those that failed or were cancelled run again with the same command, environment and resources.",
    yes: "Run them again",
  });
  if (!yes) return;
  const { reopened } = await send<{ reopened: number }>("POST", `runs/${run.id}/retry`, { which: "failed" });
  say(`${plural(reopened, "task")} will run again.`);
};

export const RunActions = ({ run }: { run: RunView }) => {
  if (role.value === "read") return null;
  const again = (run.counts["FAILED"] ?? 0) + (run.counts["CANCELED"] ?? 0) - run.unneeded;
  return (
    <div class="row">
      {isFinal(run.state) && again > 0 && (
        <button type="button" class="button" onClick={() => void retry(run).catch(sayError)}>
          Retry {count(again)}
        </button>
      )}
      {!isFinal(run.state) && (
        <button type="button" class="button danger" onClick={() => void cancel(run).catch(sayError)}>
          Cancel
        </button>
      )}
    </div>
  );
};
