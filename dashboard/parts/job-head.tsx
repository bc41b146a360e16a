import type { ComponentChildren } from "preact";
import type { JobDetail } from "../../src/api/job-details.ts";
import { now } from "../data/clock.ts";
import { commandText } from "../format/text.ts";
import { moment } from "../format/time.ts";
import { Facts, TextBlock } from "./blocks.tsx";
import { State } from "./state.tsx";

/** The head of a job's screen, whatever its kind, and what was asked for. */

export const JobHead = ({
  job,
  title,
  actions,
}: {
  job: JobDetail;
  title: ComponentChildren;
  actions?: ComponentChildren;
}) => (
  <>
    <div class="row spread">
      <div class="row">
        <h1>{title}</h1>
        <State of={job.state} />
      </div>
      {actions}
    </div>
    <section class="card" aria-label="About the job">
      <div class="pad">
        <Facts
          of={[
            ["where", job.queue === null ? job.cluster : `${job.cluster}/${job.queue}`],
            ["manager's id", job.nativeId === null ? undefined : <code>{job.nativeId}</code>],
            ["its name there", <code>{job.jobName}</code>],
            ["command", job.command === null ? undefined : <code>{commandText(job.command)}</code>],
            ["hosts", job.hosts.join(", ")],
            ["ranks", job.ranks.map(({ host, ranks }) => `${ranks} on ${host ?? "?"}`).join(", ")],
            ["exit code", job.exitCode],
            ["reason", job.reason],
            ["submitted", job.submitted === null ? undefined : moment(job.submitted, now.value)],
            ["started", job.started === null ? undefined : moment(job.started, now.value)],
            ["ended", job.finished === null ? undefined : moment(job.finished, now.value)],
            ["directory", job.directory === null ? undefined : <code>{job.directory}</code>],
          ]}
        />
      </div>
    </section>
  </>
);

export const JobSpec = ({ job }: { job: JobDetail }) =>
  Object.keys(job.spec).length === 0 ? null : (
    <TextBlock title="What was asked for" text={JSON.stringify(job.spec, null, 2)} />
  );
