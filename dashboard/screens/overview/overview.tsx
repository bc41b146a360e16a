import { overview } from "../../data/live.ts";
import { to } from "../../data/route.ts";
import { Card, Empty } from "../../parts/blocks.tsx";
import { EventList } from "../events/event-list.tsx";
import { RunsTable } from "../runs/runs-table.tsx";
import { Fleets } from "./fleets.tsx";
import { OverTime } from "./over-time.tsx";
import { Tiles } from "./tiles.tsx";

/** One screen that says how things are: numbers now, over time, runs, fleets, and what happened last. */
export const Overview = () => {
  const seen = overview.value;
  if (seen === undefined) return <Empty>Loading …</Empty>;
  return (
    <div class="stack">
      <h1 class="visually-hidden">Overview</h1>
      <Tiles of={seen} />
      <OverTime />
      <Card title="Runs" id="runs" end={<a href={to("runs")}>All runs</a>}>
        {seen.runs.length === 0 ? (
          <Empty>
            No runs yet. Type <code>slipway submit FILE.yaml</code>, or <a href={to("submit")}>submit one here</a>.
          </Empty>
        ) : (
          <RunsTable runs={seen.runs} labelledBy="runs" />
        )}
      </Card>
      <div class="overview-end">
        <Card title="Fleets" id="fleets" end={<a href={to("pilots")}>Pilots</a>}>
          <Fleets of={seen.fleets} />
        </Card>
        <Card title="What happened last" id="feed" end={<a href={to("events")}>All events</a>}>
          <EventList most={12} />
        </Card>
      </div>
    </div>
  );
};
