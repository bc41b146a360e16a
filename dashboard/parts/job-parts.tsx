import type { JobDetail, PilotDetail, SaysView, StayView } from "../../src/api/job-details.ts";
import { now } from "../data/clock.ts";
import { plainOutput } from "../format/text.ts";
import { duration, exact, moment } from "../format/time.ts";
import { Card, Empty, TextBlock } from "./blocks.tsx";
import { State } from "./state.tsx";

/** What pilots, tasks' jobs and launches have in common: all are jobs in a workload manager. */

/** The states it went through, and how long it stayed in each. */
export const History = ({ of }: { of: readonly StayView[] }) => (
  <Card title="States" id="states">
    {of.length === 0 ? (
      <Empty>Nothing is known of them any more.</Empty>
    ) : (
      <div class="table-scroll" tabIndex={0} role="region" aria-labelledby="states">
        <table class="plain">
          <thead>
            <tr>
              <th>State</th>
              <th class="num">From</th>
              <th class="num">For</th>
            </tr>
          </thead>
          <tbody>
            {of.map(({ state, at, seconds }, i) => (
              <tr key={i}>
                <td>
                  <State of={state} note={`(${state})`} />
                </td>
                <td class="num" title={exact(at)}>
                  {moment(at, now.value)}
                </td>
                <td class="num">{duration(seconds)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </Card>
);

/** What its manager says, in its words and in plain ones. */
const Says = ({ says }: { says: SaysView }) =>
  says.words === null && says.plain === null ? null : (
    <div class="hint">
      {says.words !== null && (
        <p>
          The manager says <code>{says.words}</code>
        </p>
      )}
      {says.plain !== null && <strong>{says.plain}</strong>}
      {says.remedy !== null && <p class="remedy">{says.remedy}</p>}
    </div>
  );

/** Why it was asked for, what the manager says, its states, script and output. */
export const JobParts = ({
  of,
}: {
  of: Pick<JobDetail | PilotDetail, "decision" | "says" | "history" | "script" | "outputTail">;
}) => (
  <>
    {of.decision !== null && (
      <div class="hint">
        <span class="dim">Why it was asked for: </span>
        {of.decision}
      </div>
    )}
    <Says says={of.says} />
    <History of={of.history} />
    {of.script !== null && <TextBlock title="Script" text={of.script} />}
    {of.outputTail !== null && (
      <TextBlock title="What the job itself printed, its end" text={plainOutput(of.outputTail)} />
    )}
  </>
);
