import { useState } from "preact/hooks";
import type { JobDetail } from "../../../src/api/job-details.ts";
import { send } from "../../data/api.ts";
import { useFetched } from "../../data/fetched.ts";
import { launchPieces, useOutput } from "../../data/logs.ts";
import { role } from "../../data/session.ts";
import { Card, Loaded, Segments } from "../../parts/blocks.tsx";
import { confirm } from "../../parts/confirm.tsx";
import { JobHead, JobSpec } from "../../parts/job-head.tsx";
import { JobParts } from "../../parts/job-parts.tsx";
import { LogView } from "../../parts/log-view.tsx";
import { say, sayError } from "../../parts/said.tsx";

/** One launch: spec, script, states, ranks, and its logs as they come. */

const STREAMS = ["stdout", "stderr"] as const;
const isOver = (state: JobDetail["state"]): boolean => state !== "pending" && state !== "running";

const cancel = async (id: number, again: () => void): Promise<void> => {
  const yes = await confirm({
    title: `Cancel launch ${id}?`,
    body: "Its job is taken back from the manager, or ended.",
    yes: "Cancel the launch",
    danger: true,
  });
  if (!yes) return;
  await send("DELETE", `launches/${id}`);
  say(`Launch ${id} is being cancelled.`);
  again();
};

const Logs = ({ id, follow }: { id: number; follow: boolean }) => {
  const [stream, setStream] = useState<(typeof STREAMS)[number]>("stdout");
  const output = useOutput(`${id} ${stream}`, launchPieces(id, stream, follow), follow);
  return (
    <Card title="Output" end={<Segments label="Stream" options={STREAMS} value={stream} onChange={setStream} />}>
      <LogView label={`${stream} of launch ${id}`} output={output} />
    </Card>
  );
};

export const Launch = ({ id }: { id: number }) => {
  const loaded = useFetched<JobDetail>(`jobs/${id}`, 3000);
  return (
    <Loaded from={loaded}>
      {(job) => (
        <div class="stack">
          <JobHead
            job={job}
            title={
              <>
                <span class="dim">Launch {id}</span> {job.name}
              </>
            }
            actions={
              !isOver(job.state) &&
              role.value !== "read" && (
                <button
                  type="button"
                  class="button danger"
                  onClick={() => void cancel(id, loaded.again).catch(sayError)}
                >
                  Cancel
                </button>
              )
            }
          />
          <JobParts of={job} />
          <Logs id={id} follow={!isOver(job.state)} />
          <JobSpec job={job} />
        </div>
      )}
    </Loaded>
  );
};
