import { useState } from "preact/hooks";
import type { CheckView, ClusterView } from "../../../src/api/schemas.ts";
import { ApiError, send } from "../../data/api.ts";
import { now } from "../../data/clock.ts";
import { useFetched } from "../../data/fetched.ts";
import { role } from "../../data/session.ts";
import { amount } from "../../format/numbers.ts";
import { ago } from "../../format/time.ts";
import { Card, Facts, Loaded, Problem } from "../../parts/blocks.tsx";
import { sayError } from "../../parts/said.tsx";

/** The clusters of clusters.yaml, whether they can be used, and `clusters check` for each. */

const Checks = ({ of }: { of: CheckView }) => (
  <div class="table-scroll" tabIndex={0} role="region" aria-label={`Checks of ${of.cluster}`}>
    <table class="plain">
      <thead>
        <tr>
          <th>Result</th>
          <th>What</th>
          <th>Queue</th>
          <th>Found</th>
          <th>What to do</th>
        </tr>
      </thead>
      <tbody>
        {of.checks.map((check, i) => (
          <tr key={i}>
            <td>
              <span class="state" data-state={check.ok ? "done" : "failed"}>
                {check.ok ? "well" : "wrong"}
              </span>
            </td>
            <td>{check.what}</td>
            <td>{check.queue ?? ""}</td>
            <td>{check.detail}</td>
            <td>{check.remedy ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const Cluster = ({ cluster, chosen }: { cluster: ClusterView; chosen: boolean }) => {
  const [check, setCheck] = useState<CheckView | undefined>(undefined);
  const [problem, setProblem] = useState<ApiError | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      setCheck(await send<CheckView>("POST", `clusters/${encodeURIComponent(cluster.name)}/check`));
    } catch (error) {
      if (error instanceof ApiError) setProblem(error);
      else sayError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card
      title={
        <>
          {cluster.name} <span class="dim">{cluster.type}</span>
          {cluster.default && <span class="dim"> · the default</span>}
        </>
      }
      id={`cluster-${cluster.name}`}
      end={
        role.value !== "read" && (
          <button type="button" class={chosen ? "button primary" : "button"} disabled={busy} onClick={() => void run()}>
            {busy ? "Checking …" : "Check"}
          </button>
        )
      }
    >
      <div class="pad stack">
        <Facts
          of={[
            ["queues", cluster.queues.join(", ")],
            [
              "has",
              Object.entries(cluster.resources)
                .map(([name, value]) => `${name} ${amount(name, value)}`)
                .join(", "),
            ],
            [
              "can be used",
              cluster.problem === undefined ? "not tried yet" : cluster.problem === null ? "yes" : undefined,
            ],
          ]}
        />
        {cluster.problem != null && (
          <div class="hint bad">
            <strong>{cluster.problem.cause}</strong>
            <p class="remedy">{cluster.problem.remedy}</p>
            <p class="dim">
              {cluster.problem.since !== null && `Since ${ago(cluster.problem.since, now.value)}. `}
              {cluster.problem.tasks === "local" ? "Its tasks run on this machine meanwhile." : "Its tasks wait."}
            </p>
          </div>
        )}
        {problem !== undefined && <Problem error={problem} />}
        {check !== undefined && (
          <p role="status">
            <span class="state" data-state={check.ok ? "done" : "failed"}>
              {check.ok ? "Nothing is wrong." : "Something is wrong:"}
            </span>
          </p>
        )}
      </div>
      {check !== undefined && <Checks of={check} />}
    </Card>
  );
};

export const Clusters = ({ chosen }: { chosen: string | undefined }) => {
  const loaded = useFetched<ClusterView[]>("clusters", 10_000);
  return (
    <div class="stack">
      <h1>Clusters</h1>
      <Loaded from={loaded}>
        {(clusters) => (
          <>
            {clusters
              .toSorted((a, b) => Number(b.name === chosen) - Number(a.name === chosen))
              .map((cluster) => (
                <Cluster key={cluster.name} cluster={cluster} chosen={cluster.name === chosen} />
              ))}
          </>
        )}
      </Loaded>
    </div>
  );
};
