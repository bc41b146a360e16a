import type { LaunchView } from "../../../src/api/launch-schemas.ts";
import { now } from "../../data/clock.ts";
import { useFetched } from "../../data/fetched.ts";
import { to } from "../../data/route.ts";
import { count } from "../../format/numbers.ts";
import { exact, moment } from "../../format/time.ts";
import { Empty, Loaded } from "../../parts/blocks.tsx";
import { State } from "../../parts/state.tsx";

/** Batch jobs that were handed straight to a manager, newest first. */
export const Launches = () => {
  const loaded = useFetched<LaunchView[]>("launches?limit=500", 3000);
  return (
    <div class="stack">
      <h1 id="launches">Launches</h1>
      <Loaded from={loaded}>
        {(launches) => (
          <section class="card" aria-labelledby="launches">
            {launches.length === 0 ? (
              <Empty>
                No launches. <code>slipway launch SPEC.yaml</code> hands one batch job straight to a workload manager.
              </Empty>
            ) : (
              <div class="table-scroll" tabIndex={0} role="region" aria-labelledby="launches">
                <table class="plain">
                  <thead>
                    <tr>
                      <th class="num">Launch</th>
                      <th>Name</th>
                      <th>State</th>
                      <th>Cluster</th>
                      <th>User</th>
                      <th>Manager's id</th>
                      <th class="num">Nodes</th>
                      <th class="num">Slots</th>
                      <th class="num">Submitted</th>
                      <th>What is said</th>
                    </tr>
                  </thead>
                  <tbody>
                    {launches.map((launch) => (
                      <tr key={launch.id}>
                        <td class="num mono">{launch.id}</td>
                        <td class="run-name">
                          <a href={to("launches", launch.id)}>
                            {launch.name === "" ? `launch ${launch.id}` : launch.name}
                          </a>
                        </td>
                        <td>
                          <State of={launch.state} />
                        </td>
                        <td>{launch.cluster}</td>
                        <td>{launch.user}</td>
                        <td class="mono">{launch.nativeId ?? ""}</td>
                        <td class="num">{count(launch.nodes)}</td>
                        <td class="num">{count(launch.slots)}</td>
                        <td class="num dim" title={exact(launch.submitted)}>
                          {moment(launch.submitted, now.value)}
                        </td>
                        <td class="reason">{launch.reason ?? launch.managerState ?? ""}</td>
                      </tr>
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
