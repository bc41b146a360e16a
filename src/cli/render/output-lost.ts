import type { OutputLostView, RunView } from "../../api/schemas.ts";
import { formatSize } from "../../core/quantities.ts";
import { lostText } from "../../core/output-lost.ts";
import { count, plural } from "./text.ts";

/** `45M lost: no room on the disk`. */
export const lostFact = ({ bytes, reason }: OutputLostView): string => `${formatSize(bytes)} lost: ${lostText(reason)}`;

/** What `logs` says of a task whose output is incomplete, after the output. */
export const lostLine = (task: string, bytes: number, { reason }: OutputLostView): string =>
  `${task}: ${formatSize(bytes)} of its output was lost: ${lostText(reason)}`;

export const moreLost = (tasks: number): string => `… and output of ${count(tasks)} more tasks`;

/** In a run's summary, and with `show`. */
export const lostWarning = ({ id, outputLost }: Pick<RunView, "id" | "outputLost">): string | undefined =>
  // an earlier version of the server does not say
  outputLost === null || outputLost === undefined
    ? undefined
    : `output of ${plural(outputLost.tasks, "task")} is incomplete, ${formatSize(outputLost.bytes)} lost: slipway logs ${id}`;
