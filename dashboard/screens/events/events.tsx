import { useState } from "preact/hooks";
import { describe } from "../../format/events.ts";
import { EventList } from "./event-list.tsx";

/** The last events, with a filter. `slipway events` has all of them. */
export const Events = () => {
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  return (
    <div class="stack">
      <div class="row spread">
        <h1 id="events">Events</h1>
        <input
          type="search"
          data-filter
          aria-label="Filter events"
          placeholder="Filter"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </div>
      <section class="card" aria-labelledby="events">
        <EventList
          most={200}
          of={(event) => {
            if (wanted === "") return true;
            const { about, what } = describe(event);
            return `${event.event} ${about} ${what}`.toLowerCase().includes(wanted);
          }}
        />
      </section>
      <p class="dim">
        The last 200, without successes. <code>slipway events</code> tells all that the journal has.
      </p>
    </div>
  );
};
