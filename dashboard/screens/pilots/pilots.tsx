import type { PilotView } from "../../../src/api/schemas.ts";
import { query } from "../../data/api.ts";
import { now } from "../../data/clock.ts";
import { useFetched } from "../../data/fetched.ts";
import { refine, route, to } from "../../data/route.ts";
import { count } from "../../format/numbers.ts";
import { exact, left, moment } from "../../format/time.ts";
import { isFinal } from "../../format/progress.ts";
import { Empty, Loaded } from "../../parts/blocks.tsx";
import { State } from "../../parts/state.tsx";

/** Pilots, those that live first. */

const sumOf = (pilot: PilotView, name: "running" | "queued"): number =>
  pilot.agents.reduce((sum, agent) => sum + agent[name], 0);

const newestFirst = (a: PilotView, b: PilotView): number =>
  Number(isFinal(a.state)) - Number(isFinal(b.state)) || Number(b.id) - Number(a.id);

const MOST = 500;

const Row = ({ pilot }: { pilot: PilotView }) => (
  <tr>
    <td>
      <a href={to("pilots", pilot.id)}>Pilot {pilot.id}</a>
    </td>
    <td>
      {pilot.cluster}/{pilot.queue}
    </td>
    <td>
      <State of={pilot.state} {...(pilot.draining ? { note: "(draining)" } : {})} />
    </td>
    <td class="mono">{pilot.nativeId ?? ""}</td>
    <td>{pilot.agents.map(({ host }) => host).join(", ")}</td>
    <td class="num">{count(sumOf(pilot, "running"))}</td>
    <td class="num">{count(sumOf(pilot, "queued"))}</td>
    <td class="num" title={exact(pilot.ends)}>
      {isFinal(pilot.state) ? "–" : left(pilot.ends, now.value)}
    </td>
    <td class="num dim" title={exact(pilot.requested)}>
      {moment(pilot.requested, now.value)}
    </td>
    <td class="reason">{pilot.waiting ?? pilot.reason ?? ""}</td>
  </tr>
);

export const Pilots = () => {
  const cluster = route.value.query.get("cluster") ?? "";
  const loaded = useFetched<PilotView[]>(`pilots${query({ cluster })}`, 3000);
  return (
    <div class="stack">
      <div class="row spread">
        <h1 id="pilots">Pilots</h1>
        {cluster !== "" && (
          <button type="button" class="chip" aria-pressed="true" onClick={() => refine({ cluster: undefined })}>
            of {cluster} ✕
          </button>
        )}
      </div>
      <Loaded from={loaded}>
        {(pilots) => (
          <section class="card" aria-labelledby="pilots">
            {pilots.length === 0 ? (
              <Empty>No pilots. They are started while tasks wait.</Empty>
            ) : (
              <div class="table-scroll" tabIndex={0} role="region" aria-labelledby="pilots">
                <table class="plain">
                  <thead>
                    <tr>
                      <th>Pilot</th>
                      <th>Fleet</th>
                      <th>State</th>
                      <th>Job</th>
                      <th>Hosts</th>
                      <th class="num">Running</th>
                      <th class="num">Backlog</th>
                      <th class="num">Time left</th>
                      <th class="num">Requested</th>
                      <th>What is said</th>
                    </tr>
                  </thead>
                  <tbody>
                    {pilots
                      .toSorted(newestFirst)
                      .slice(0, MOST)
                      .map((pilot) => (
                        <Row key={pilot.id} pilot={pilot} />
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
