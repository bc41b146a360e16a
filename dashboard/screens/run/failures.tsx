import type { FailureGroup, FailuresView } from "../../../src/api/failures.ts";
import type { RunView } from "../../../src/api/schemas.ts";
import { query } from "../../data/api.ts";
import { useFetched } from "../../data/fetched.ts";
import { to } from "../../data/route.ts";
import { count, plural } from "../../format/numbers.ts";
import { isFinal } from "../../format/progress.ts";
import { oneLine } from "../../format/text.ts";
import { Empty, Loaded, Why } from "../../parts/blocks.tsx";

/** What went wrong, alike with alike, and beside it why and what would help. */

const howOf = ({ exitCode, signal, reason }: FailureGroup): string =>
  signal !== null ? `ended by ${signal}` : exitCode !== null ? `exit code ${exitCode}` : (reason ?? "failed");

const Group = ({ run, of }: { run: number; of: FailureGroup }) => {
  const how = howOf(of);
  const filter = query({ state: "failed", exitCode: of.signal === null ? (of.exitCode ?? undefined) : undefined });
  return (
    <li class="card failure">
      <div class="failure-what">
        <div class="row">
          <strong class="failure-count">{count(of.count)}</strong>
          <span class="state" data-state="failed">
            {how}
          </span>
          {of.reason !== null && of.reason !== how && <span class="soft">{oneLine(of.reason)}</span>}
        </div>
        {of.lastLine !== null && <pre class="last-line">{oneLine(of.lastLine, 1000)}</pre>}
        {of.lastLine === null && !of.read && <p class="dim">Their output was not looked at: there are too many.</p>}
        <div class="row">
          {of.tasks.slice(0, 8).map(({ id, index, name }) => (
            <a key={id} class="mono" href={to("runs", run, "task", index)} title={name}>
              {id}
            </a>
          ))}
          {of.count > of.tasks.slice(0, 8).length && (
            <a href={`${to("runs", run, "tasks")}${filter}`}>all in the table</a>
          )}
        </div>
      </div>
      <Why why={of.why} bad />
    </li>
  );
};

export const Failures = ({ run }: { run: RunView }) => {
  const failed = run.counts["FAILED"] ?? 0;
  // looked at again as failures come in, but calmly
  const failures = useFetched<FailuresView>(
    failed === 0 ? undefined : `runs/${run.id}/failures`,
    isFinal(run.state) ? undefined : 5000,
  );
  if (failed === 0) return <Empty>No task of this run has failed.</Empty>;
  return (
    <Loaded from={failures}>
      {({ groups, more }) => (
        <div class="stack">
          <ol class="failures">
            {groups.map((group, i) => (
              <Group key={i} run={run.id} of={group} />
            ))}
          </ol>
          {more.groups > 0 && (
            <p class="dim">
              And {plural(more.tasks, "task")} that failed in {count(more.groups)} other ways.
            </p>
          )}
        </div>
      )}
    </Loaded>
  );
};
