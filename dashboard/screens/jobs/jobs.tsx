import type { JobView } from "../../../src/api/job-schemas.ts";
import { query } from "../../data/api.ts";
import { now } from "../../data/clock.ts";
import { useFetched } from "../../data/fetched.ts";
import { refine, route, to } from "../../data/route.ts";
import { ago, exact } from "../../format/time.ts";
import { Empty, Loaded } from "../../parts/blocks.tsx";
import { State } from "../../parts/state.tsx";

/** What Slipway has in workload managers: pilots, jobs of tasks, launches. */

const KINDS = ["task", "pilot", "launch"] as const;

/** A pilot and a launch have screens of their own. */
export const jobPlace = (job: JobView): string => {
  if (job.kind === "launch") return to("launches", job.id);
  return job.kind === "pilot" ? to("pilots", job.id.replace(/^pilot /, "")) : to("jobs", job.id);
};

const Row = ({ job }: { job: JobView }) => (
  <tr>
    <td>
      <a href={jobPlace(job)}>
        {job.kind === "launch" ? `launch ${job.id}` : job.kind === "task" ? `task ${job.id}` : job.id}
      </a>
    </td>
    <td class="run-name">{job.name}</td>
    <td>
      <State of={job.state} />
    </td>
    <td>
      {job.cluster}
      {"queue" in job && `/${job.queue}`}
    </td>
    <td class="mono">{job.nativeId ?? ""}</td>
    <td class="num dim" title={exact(job.since)}>
      {ago(job.since, now.value)}
    </td>
    <td class="reason">{job.reason ?? ""}</td>
  </tr>
);

export const Jobs = () => {
  const kind = route.value.query.get("kind") ?? "";
  const loaded = useFetched<JobView[]>(`jobs${query({ kind, limit: 500 })}`, 3000);
  return (
    <div class="stack">
      <div class="row spread">
        <h1 id="jobs">Jobs</h1>
        <div class="chips" role="group" aria-label="Kind">
          {KINDS.map((each) => (
            <button
              key={each}
              type="button"
              class="chip"
              aria-pressed={each === kind}
              onClick={() => refine({ kind: each === kind ? undefined : each })}
            >
              {each === "task" ? "of tasks" : each === "pilot" ? "pilots" : "launches"}
            </button>
          ))}
        </div>
      </div>
      <Loaded from={loaded}>
        {(jobs) => (
          <section class="card" aria-labelledby="jobs">
            {jobs.length === 0 ? (
              <Empty>Nothing is in a workload manager now.</Empty>
            ) : (
              <div class="table-scroll" tabIndex={0} role="region" aria-labelledby="jobs">
                <table class="plain">
                  <thead>
                    <tr>
                      <th>What</th>
                      <th>Name</th>
                      <th>State</th>
                      <th>Where</th>
                      <th>Manager's id</th>
                      <th class="num">Since</th>
                      <th>What is said</th>
                    </tr>
                  </thead>
                  <tbody>
                    {jobs.map((job) => (
                      <Row key={`${job.kind} ${job.id}`} job={job} />
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </section>
        )}
      </Loaded>
    </div>
  );
};
