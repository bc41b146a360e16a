import type { RunView, TaskView } from "../../api/schemas.ts";
import { lostWarning } from "./output-lost.ts";
import { progressOf } from "./progress.ts";
import { elapsed, failuresList, outcomes } from "./runs.ts";
import { stateColored, type Style } from "./style.ts";
import { count, duration, perSecond, plural, printable } from "./text.ts";

/** What to type next after failures, with the ids filled in; `stops` when the server ends with this command. */
export const nextSteps = (run: RunView, failure: TaskView | undefined, stops = false, program = "slipway"): string => {
  const lines: string[] = stops ? [`${program} up    (this run's own server has stopped)`] : [];
  if (failure !== undefined) {
    lines.push(`${program} why ${failure.id}`);
    lines.push(`${program} logs ${failure.id} --stderr`);
  } else lines.push(`${program} why ${run.id}`);
  lines.push(`${program} retry ${run.id} --failed`);
  return `next:\n${lines.map((line) => `  ${line}`).join("\n")}`;
};

/** The end of `run` and `wait`: what became of the run, what failed and why, what to type next. */
export const runSummary = (
  run: RunView,
  failures: readonly TaskView[],
  style: Style,
  now: number,
  succeeded: boolean,
  stops = false,
  program = "slipway",
): string => {
  const took = elapsed(run, now);
  const { done, failed } = progressOf(run);
  const ran = done + failed - (run.skipped ?? 0);
  const rate = took !== undefined && took > 0 && run.total > 1 ? ran / took : undefined;
  const time = took === undefined ? "" : ` in ${duration(took)}`;
  const speed = rate === undefined || rate === 0 ? "" : `, ${perSecond(rate)} tasks/s`;
  const lines = [
    `run ${run.id} ${printable(run.name)}: ${stateColored(run.state, style)}, ${outcomes(run, style)}${time}${speed}`,
  ];
  const repeated: string[] = [];
  if (run.retries > 0) repeated.push(run.retries === 1 ? "1 retry" : `${count(run.retries)} retries`);
  if (run.losses > 0) repeated.push(`${plural(run.losses, "attempt")} lost and run again`);
  if (repeated.length > 0) lines.push(`  with ${repeated.join(", ")}`);
  const warning = lostWarning(run);
  if (warning !== undefined) lines.push(`  ${style.yellow("warning:")} ${warning}`);
  if (run.reason !== null) lines.push(`  ${printable(run.reason)}`);
  if (failures.length > 0) {
    lines.push(failuresList(failures, style));
    if (failed > failures.length) lines.push(`  … and ${count(failed - failures.length)} more`);
  }
  if (!succeeded) lines.push(nextSteps(run, failures[0], stops, program));
  return lines.join("\n");
};
