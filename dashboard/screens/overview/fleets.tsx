import type { OverviewView } from "../../../src/api/overview.ts";
import { now } from "../../data/clock.ts";
import { to } from "../../data/route.ts";
import { count } from "../../format/numbers.ts";
import { exact, left } from "../../format/time.ts";
import { Empty } from "../../parts/blocks.tsx";

/** Fleets: how many pilots each has, of how many; what waits for them; when the first of them ends. */

type Fleet = OverviewView["fleets"][number];

const Pilots = ({ of: { active, draining, pending, max } }: { of: Fleet }) => {
  const most = Math.max(max, active + pending, 1);
  const words = `${count(active)} active${draining > 0 ? ` (${count(draining)} draining)` : ""}, ${count(pending)} pending, at most ${count(max)}`;
  return (
    <div class="fleet-pilots">
      <div class="bar" title={words}>
        <i data-state="running" style={{ flexGrow: active / most }} />
        <i data-state="queued" style={{ flexGrow: pending / most }} />
        <i data-state="waiting" style={{ flexGrow: Math.max(0, most - active - pending) / most }} />
      </div>
      <span class="nowrap">
        {count(active)}
        {pending > 0 && <span class="dim"> + {count(pending)}</span>}
        <span class="dim"> of {count(max)}</span>
      </span>
    </div>
  );
};

export const Fleets = ({ of }: { of: readonly Fleet[] }) => {
  if (of.length === 0) return <Empty>No fleets: no cluster has queues for pilots.</Empty>;
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-labelledby="fleets">
      <table class="plain">
        <thead>
          <tr>
            <th>Fleet</th>
            <th>Pilots: active + pending</th>
            <th class="num">Tasks waiting</th>
            <th class="num">First ends in</th>
          </tr>
        </thead>
        <tbody>
          {of.map((fleet) => (
            <>
              <tr key={`${fleet.cluster}/${fleet.queue}`}>
                <td>
                  <a href={`${to("pilots")}?cluster=${encodeURIComponent(fleet.cluster)}`}>
                    {fleet.cluster}/{fleet.queue}
                  </a>
                  <div class="dim">{fleet.strategy}</div>
                </td>
                <td>
                  <Pilots of={fleet} />
                </td>
                <td class="num">{count(fleet.waiting)}</td>
                <td class="num" title={exact(fleet.ends)}>
                  {left(fleet.ends, now.value)}
                </td>
              </tr>
              {(fleet.problem ?? fleet.failure) !== null && (
                <tr>
                  <td colSpan={4} class="fleet-problem">
                    {fleet.problem ?? fleet.failure}
                  </td>
                </tr>
              )}
            </>
          ))}
        </tbody>
      </table>
    </div>
  );
};
