import { useState } from "preact/hooks";
import type { RunView } from "../../../src/api/schemas.ts";
import { runPieces, useOutput } from "../../data/logs.ts";
import { isFinal } from "../../format/progress.ts";
import { Card, Segments } from "../../parts/blocks.tsx";
import { LogView } from "../../parts/log-view.tsx";

/** What all tasks of a run write, as they write it. */

const STREAMS = ["stdout", "stderr"] as const;

export const RunLogs = ({ run }: { run: RunView }) => {
  const [stream, setStream] = useState<(typeof STREAMS)[number]>("stdout");
  const follow = !isFinal(run.state);
  const output = useOutput(`${run.id} ${stream}`, runPieces(run.id, stream, follow), follow);
  return (
    <Card
      title="Output of all tasks"
      end={
        <div class="row">
          {output.state !== "ended" && <span class="state" data-state="running">{`follows`}</span>}
          <Segments label="Stream" options={STREAMS} value={stream} onChange={setStream} />
        </div>
      }
    >
      <LogView label={`${stream} of run ${run.id}`} output={output} />
    </Card>
  );
};
