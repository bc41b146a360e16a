import type { JobDetail } from "../../../src/api/job-details.ts";
import { useFetched } from "../../data/fetched.ts";
import { to } from "../../data/route.ts";
import { Loaded } from "../../parts/blocks.tsx";
import { JobHead, JobSpec } from "../../parts/job-head.tsx";
import { JobParts } from "../../parts/job-parts.tsx";

/** The job of one task. */
export const Job = ({ id }: { id: string }) => {
  const loaded = useFetched<JobDetail>(`jobs/${encodeURIComponent(id)}`, 3000);
  const [run, index] = id.split(".");
  return (
    <Loaded from={loaded}>
      {(job) => (
        <div class="stack">
          <JobHead
            job={job}
            title={
              index === undefined ? (
                `Job ${id}`
              ) : (
                <>
                  Job of <a href={to("runs", run!, "task", index)}>task {id}</a>
                </>
              )
            }
          />
          <JobParts of={job} />
          <JobSpec job={job} />
        </div>
      )}
    </Loaded>
  );
};
