import type { RunView, TaskView } from "../../api/schemas.ts";
import { canceledOf, isFinalRun } from "../../client/outcome.ts";
import { lostWarning } from "./output-lost.ts";
import { endedOf, progressOf, rangeOf } from "./progress.ts";
import { stateColored, stateColumn, type Style } from "./style.ts";
import { facts, table } from "./table.ts";
import { count, duration, localTime, plural, printable, secondsBetween } from "./text.ts";
import type { Row } from "../../core/ids.ts";

/** How long a run took or takes, the time between an end and a retry aside; `now` is the clock's milliseconds. */
export const elapsed = (run: RunView, now: number): number | undefined => {
  const seconds = secondsBetween(run.started ?? run.submitted, run.finished ?? now);
  return seconds === undefined ? undefined : Math.max(0, seconds - (run.idle ?? 0));
};

const known = (seconds: number | undefined): string => (seconds === undefined ? "-" : duration(seconds));

export const runsTable = (runs: readonly RunView[], style: Style, now: number, width?: number): string =>
  table(
    runs,
    [
      { title: "RUN", value: (run) => String(run.id), right: true },
      { title: "NAME", value: (run) => run.name, shrinksTo: 12 },
      stateColumn(style),
      { title: "TASKS", value: (run) => count(run.total), right: true },
      { title: "DONE", value: (run) => count(progressOf(run).done), right: true },
      ...(runs.some(({ skipped = 0 }) => skipped > 0)
        ? [{ title: "SKIPPED", value: (run: RunView) => count(run.skipped ?? 0), right: true }]
        : []),
      { title: "FAILED", value: (run) => count(progressOf(run).failed), right: true },
      { title: "CANCELLED", drops: 3, value: (run) => count(progressOf(run).canceled), right: true },
      { title: "RUNNING", drops: 2, value: (run) => count(progressOf(run).running), right: true },
      { title: "SUBMITTED", drops: 4, value: (run) => localTime(run.submitted) },
      { title: "TIME", value: (run) => known(elapsed(run, now)), right: true },
      {
        title: "ETA",
        drops: 1,
        value: (run) => (isFinalRun(run) || run.eta === null ? "-" : duration(run.eta)),
        right: true,
      },
    ],
    width,
  );

/** `1h20m (1h5m to 1h45m with 80 %), about 17:32`, or why nobody can tell. */
const toGoText = (run: RunView): string | undefined => {
  if (isFinalRun(run)) return undefined;
  if (run.eta === null) return run.etaReason === null ? undefined : `not known: ${printable(run.etaReason)}`;
  const range = rangeOf(run);
  if (range === undefined) return duration(run.eta);
  return `${duration(run.eta)} (with 80 %: ${range.join(" to ")}), until ${localTime(run.etaRange!.p50)}`;
};

/** What tasks ended how, in words: `996 done, 4 failed`. */
export const outcomes = (run: RunView, style: Style): string => {
  const { done, failed, running, total } = progressOf(run);
  const canceled = canceledOf(run);
  const waiting = total - endedOf(progressOf(run)) - running;
  const skipped = run.skipped ?? 0;
  const parts = [skipped === 0 ? `${count(done)} done` : `${count(done)} done (${count(skipped)} of them skipped)`];
  if (failed > 0) parts.push(style.red(`${count(failed)} failed`));
  if (canceled > 0) parts.push(style.yellow(`${count(canceled)} cancelled`));
  if (run.unneeded > 0) parts.push(`${count(run.unneeded)} not needed`);
  if (running > 0) parts.push(style.cyan(`${count(running)} running`));
  if (waiting > 0) parts.push(`${count(waiting)} waiting`);
  return parts.join(", ");
};

export const groupsTable = (run: RunView, width?: number): string =>
  table(
    run.groups ?? [],
    [
      { title: "GROUP", value: (group) => group.name, shrinksTo: 12 },
      { title: "TASKS", value: (group) => count(group.total), right: true },
      { title: "DONE", value: (group) => count(group.counts["DONE"] ?? 0), right: true },
      { title: "FAILED", value: (group) => count(group.counts["FAILED"] ?? 0), right: true },
      { title: "CANCELLED", drops: 2, value: (group) => count(group.counts["CANCELED"] ?? 0), right: true },
      { title: "RUNNING", drops: 1, value: (group) => count(group.counts["AGENT_EXECUTING"] ?? 0), right: true },
      { title: "AFTER", drops: 3, value: (group) => group.after.join(", "), shrinksTo: 12 },
    ],
    width,
  );

/** Failed tasks, each with why and what it said last. */
export const failuresList = (tasks: readonly TaskView[], style: Style): string =>
  tasks
    .map((task) => {
      const why = task.reason ?? `${task.signal === null ? `exit code ${task.exitCode ?? "?"}` : task.signal}`;
      const lines = [`  ${style.red(task.id)}  ${printable(task.name)}: ${printable(why)}`];
      const last = task.lastStderr?.trimEnd().split("\n").at(-1)?.trim();
      if (last !== undefined && last !== "") lines.push(`        ${style.dim(printable(last).slice(0, 300))}`);
      return lines.join("\n");
    })
    .join("\n");

/** How the tasks are named: `3.1 to 3.100`, `3.1, 3.3 … 3.99`. */
export const numberingText = ({ id, total, numbering: { start, step } }: RunView): string => {
  const nth = (row: Row): string => `${id}.${start + row * step}`;
  if (total <= 1) return nth(0);
  return step === 1 ? `${nth(0)} to ${nth(total - 1)}` : `${nth(0)}, ${nth(1)} … ${nth(total - 1)}`;
};

/** `show RUN`. */
export const runScreen = (
  run: RunView,
  failures: readonly TaskView[],
  style: Style,
  now: number,
  width?: number,
): string => {
  const took = elapsed(run, now);
  const sections = [
    `${style.bold(`run ${run.id}`)}  ${printable(run.name)}  ${stateColored(run.state, style)}`,
    facts([
      ["tasks", `${count(run.total)}: ${outcomes(run, style)}`],
      ["resumes", run.resumes == null ? undefined : `run ${run.resumes}`],
      ["numbered", numberingText(run)],
      ["submitted", localTime(run.submitted)],
      ["started", run.started === null ? undefined : localTime(run.started)],
      ["finished", run.finished === null ? undefined : localTime(run.finished)],
      ["time", took === undefined || run.started === null ? undefined : duration(took)],
      ["to go", toGoText(run)],
      ["retries", run.retries > 0 ? count(run.retries) : undefined],
      ["losses", run.losses > 0 ? `${count(run.losses)} (run again at no cost)` : undefined],
      ["warning", lostWarning(run)],
      ["reason", run.reason === null ? undefined : printable(run.reason)],
    ]),
  ];
  if ((run.groups?.length ?? 0) > 1) sections.push(groupsTable(run, width));
  const failed = progressOf(run).failed;
  if (failures.length > 0) {
    const more = failed > failures.length ? `, the first ${failures.length}` : "";
    sections.push(`${plural(failed, "failed task")}${more}:\n${failuresList(failures, style)}`);
  }
  return sections.join("\n\n");
};
