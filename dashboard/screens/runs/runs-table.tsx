import type { RunView } from "../../../src/api/schemas.ts";
import { now } from "../../data/clock.ts";
import { to } from "../../data/route.ts";
import { count, percent } from "../../format/numbers.ts";
import { endedOf, etaOf, isFinal } from "../../format/progress.ts";
import { duration, exact, moment, secondsBetween } from "../../format/time.ts";
import { Bar, State } from "../../parts/state.tsx";

/** Runs with how far they are, and when they should end. */

/** Seconds it took or takes, without the time between an end and a retry. */
export const elapsed = (run: RunView, at: number): number | undefined => {
  if (run.started === null) return undefined;
  const seconds = secondsBetween(run.started, run.finished ?? at);
  return seconds === undefined ? undefined : Math.max(0, seconds - (run.idle ?? 0));
};

const Eta = ({ run }: { run: RunView }) => {
  if (isFinal(run.state)) return <span class="dim">–</span>;
  const eta = etaOf(run);
  if (eta === undefined)
    return (
      <span class="dim" title={run.etaReason ?? undefined}>
        not known
      </span>
    );
  return (
    <span
      title={run.etaRange == null ? undefined : `with 80 %: ${exact(run.etaRange.p10)} to ${exact(run.etaRange.p90)}`}
    >
      {eta.likely}
      {eta.range !== undefined && <span class="dim"> ({eta.range})</span>}
    </span>
  );
};

export const RunsTable = ({ runs, labelledBy }: { runs: readonly RunView[]; labelledBy: string }) => (
  <div class="table-scroll" tabIndex={0} role="region" aria-labelledby={labelledBy}>
    <table class="plain runs">
      <thead>
        <tr>
          <th class="num">Run</th>
          <th>Name</th>
          <th>State</th>
          <th class="wide">Progress</th>
          <th class="num">Tasks</th>
          <th class="num">Failed</th>
          <th class="num">To go (with 80 %)</th>
          <th class="num">Time</th>
          <th class="num">Submitted</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id}>
            <td class="num mono">{run.id}</td>
            <td class="run-name">
              <a href={to("runs", run.id)}>{run.name === "" ? `run ${run.id}` : run.name}</a>
            </td>
            <td>
              <State of={run.state} />
            </td>
            <td class="wide">
              <div class="run-progress">
                <Bar counts={run.counts} total={run.total} />
                <span class="dim">{percent(endedOf(run.counts), run.total)}</span>
              </div>
            </td>
            <td class="num">{count(run.total)}</td>
            <td class="num">
              {(run.counts["FAILED"] ?? 0) === 0 ? (
                <span class="dim">0</span>
              ) : (
                <a class="bad" href={to("runs", run.id, "failures")}>
                  {count(run.counts["FAILED"]!)}
                </a>
              )}
            </td>
            <td class="num">
              <Eta run={run} />
            </td>
            <td class="num">{duration(elapsed(run, now.value))}</td>
            <td class="num dim" title={exact(run.submitted)}>
              {moment(run.submitted, now.value)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
