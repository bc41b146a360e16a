import { useEffect } from "preact/hooks";
import type { EventView } from "../../../src/api/schemas.ts";
import { now } from "../../data/clock.ts";
import { feed } from "../../data/live.ts";
import { to } from "../../data/route.ts";
import { describe } from "../../format/events.ts";
import { exact, moment } from "../../format/time.ts";
import { Empty } from "../../parts/blocks.tsx";
import { loadFeed } from "../../data/feed.ts";

/** What happened, newest first, in sentences. */

/** Where an event leads. */
const placeOf = ({ run, task, detail }: EventView): string | undefined => {
  const [id, index] = (task ?? "").split(".");
  if (index !== undefined) return to("runs", id!, "task", index);
  if (run !== undefined) return to("runs", run);
  const pilot = detail?.["pilot"];
  if (typeof pilot === "string" || typeof pilot === "number") return to("pilots", pilot);
  const launch = detail?.["launch"];
  return typeof launch === "number" ? to("launches", launch) : undefined;
};

const Line = ({ event }: { event: EventView }) => {
  const { about, what, state } = describe(event);
  const place = placeOf(event);
  return (
    <li>
      <time class="dim" dateTime={event.time} title={exact(event.time)}>
        {moment(event.time, now.peek())}
      </time>
      <span class="state" data-state={state} aria-hidden="true" />
      <span>
        {place === undefined ? about : <a href={place}>{about}</a>} {what}
      </span>
    </li>
  );
};

export const EventList = ({ most, of = () => true }: { most: number; of?: (event: EventView) => boolean }) => {
  useEffect(() => void loadFeed(), []);
  const events = feed.value.filter(of).slice(0, most);
  if (events.length === 0) return <Empty>Nothing yet.</Empty>;
  return (
    <ol class="events">
      {events.map((event) => (
        <Line key={event.seq} event={event} />
      ))}
    </ol>
  );
};
