import { useEffect } from "preact/hooks";
import type { RunView, WhyView } from "../../../src/api/schemas.ts";
import { now } from "../../data/clock.ts";
import { useFetched } from "../../data/fetched.ts";
import { liveRun, watchRun } from "../../data/live.ts";
import { to } from "../../data/route.ts";
import { count } from "../../format/numbers.ts";
import { endedOf, etaOf, isFinal } from "../../format/progress.ts";
import { duration, exact, moment, soon } from "../../format/time.ts";
import { Empty, Loaded, Why } from "../../parts/blocks.tsx";
import { Bar, Legend, State } from "../../parts/state.tsx";
import { elapsed } from "../runs/runs-table.tsx";
import { RunActions } from "./actions.tsx";
import { Efficiency } from "./efficiency.tsx";
import { Failures } from "./failures.tsx";
import { RunLogs } from "./logs.tsx";
import { Stages } from "./stages.tsx";
import { TaskTable } from "./task-table.tsx";
import { Timeline } from "./timeline.tsx";

/** A run: how far it is, and everything about it behind tabs. */

const TABS = ["stages", "timeline", "tasks", "failures", "logs", "efficiency"] as const;

/** `12m (10m – 15m with 80 %), about 14:32`. */
const ToGo = ({ run }: { run: RunView }) => {
  if (isFinal(run.state)) return null;
  const eta = etaOf(run);
  if (eta === undefined) return run.etaReason === null ? null : <span class="dim">ETA not known: {run.etaReason}</span>;
  return (
    <span title={run.etaRange == null ? undefined : exact(run.etaRange.p50)}>
      <strong>{eta.likely}</strong> to go
      {eta.range !== undefined && <span class="soft"> ({eta.range} with 80 %)</span>}
      {run.etaRange != null && <span class="dim">, about {soon(run.etaRange.p50, now.value)}</span>}
    </span>
  );
};

const Head = ({ run }: { run: RunView }) => (
  <>
    <div class="row spread">
      <div class="row">
        <h1>
          <span class="dim">Run {run.id}</span> {run.name}
        </h1>
        <State of={run.state} />
      </div>
      <RunActions run={run} />
    </div>
    <section class="card run-head" aria-label="Progress">
      <Bar counts={run.counts} total={run.total} tall />
      <div class="row spread">
        <Legend counts={run.counts} href={(word) => `${to("runs", run.id, "tasks")}?state=${word}`} />
        <span>
          <strong>{count(endedOf(run.counts))}</strong> of {count(run.total)} ended
        </span>
      </div>
      <div class="row soft run-facts">
        <ToGo run={run} />
        <span>
          {isFinal(run.state) ? "took " : "for "}
          {duration(elapsed(run, now.value))}
        </span>
        <span title={exact(run.submitted)}>submitted {moment(run.submitted, now.value)}</span>
        {run.retries > 0 && <span>{count(run.retries)} retries</span>}
        {run.losses > 0 && <span title="run again at no cost">{count(run.losses)} losses</span>}
        {run.unneeded > 0 && <span>{count(run.unneeded)} not needed</span>}
        {(run.skipped ?? 0) > 0 && <span>{count(run.skipped!)} skipped</span>}
        {run.resumes != null && (
          <span>
            resumes <a href={to("runs", run.resumes)}>run {run.resumes}</a>
          </span>
        )}
        {run.outputLost !== null && (
          <span class="bad">output of {count(run.outputLost.tasks)} tasks is incomplete</span>
        )}
        {run.reason !== null && <span>{run.reason}</span>}
      </div>
    </section>
  </>
);

/** Why it does not go on, while it has not ended; why it failed, once it has. */
const RunWhy = ({ run }: { run: RunView }) => {
  const moving = (run.counts["AGENT_EXECUTING"] ?? 0) + (run.counts["TMGR_SCHEDULING"] ?? 0) > 0;
  const asks = run.state === "FAILED" || (!isFinal(run.state) && !moving);
  const why = useFetched<WhyView>(asks ? `runs/${run.id}/why` : undefined, isFinal(run.state) ? undefined : 5000);
  return why.value === undefined ? null : <Why why={why.value} bad={run.state === "FAILED"} />;
};

const Tab = ({ run, tab }: { run: RunView; tab: string }) => {
  switch (tab) {
    case "stages":
      return <Stages run={run} />;
    case "timeline":
      return <Timeline run={run} />;
    case "tasks":
      return <TaskTable run={run} />;
    case "failures":
      return <Failures run={run} />;
    case "logs":
      return <RunLogs run={run} />;
    case "efficiency":
      return <Efficiency run={run} />;
    default:
      return <Empty>There is nothing at this address.</Empty>;
  }
};

export const Run = ({ id, tab }: { id: number; tab: string }) => {
  useEffect(() => {
    watchRun(id);
    return () => watchRun(undefined);
  }, [id]);
  const loaded = useFetched<RunView>(`runs/${id}`);
  const told = liveRun.value?.run;
  const run = told?.id === id ? { ...loaded.value, ...told } : loaded.value;
  return (
    <Loaded from={{ ...loaded, value: run }}>
      {(run) => (
        <div class="stack">
          <Head run={run} />
          <RunWhy run={run} />
          <nav class="tabs" aria-label="Parts of the run">
            {TABS.map((each) => (
              <a key={each} href={to("runs", id, each)} aria-current={each === tab ? "page" : undefined}>
                {each[0]!.toUpperCase() + each.slice(1)}
                {each === "failures" && (run.counts["FAILED"] ?? 0) > 0 && (
                  <span class="badge">{count(run.counts["FAILED"]!)}</span>
                )}
              </a>
            ))}
          </nav>
          <Tab run={run} tab={tab} />
        </div>
      )}
    </Loaded>
  );
};
