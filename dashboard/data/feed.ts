import type { EventView } from "../../src/api/schemas.ts";
import { ask, lines, query } from "./api.ts";
import { feed, generation } from "./live.ts";
import { serverNow } from "./clock.ts";

/** What happened before we looked: the last hours, once; from then on the stream tells. */

const BEFORE = 6 * 3600 * 1000;
const MOST = 200;
/** The stream does not tell of them one by one either. */
const QUIET = new Set(["tasks.assigned"]);

let loaded = -1;

export const loadFeed = async (): Promise<void> => {
  if (loaded === generation.peek()) return;
  loaded = generation.peek();
  const found: EventView[] = [];
  try {
    const answer = await ask(`events${query({ time: new Date(serverNow() - BEFORE).toISOString() })}`);
    for await (const event of lines<EventView | { resume: number }>(answer)) {
      if (!("event" in event) || QUIET.has(event.event)) continue;
      found.push(event);
      if (found.length > 2 * MOST) found.splice(0, MOST);
    }
  } catch {
    // the banner says that the server is away; the next generation asks again
    return;
  }
  const first = feed.peek().at(-1)?.seq ?? Infinity;
  feed.value = [...feed.peek(), ...found.filter(({ seq }) => seq < first).toReversed()].slice(0, MOST);
};
