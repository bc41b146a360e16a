import type { LiveEvent } from "../api/live.ts";
import type { RunId } from "../core/ids.ts";
import { readLines } from "./lines.ts";
import type { Requests } from "./requests.ts";
import { type FollowOptions, resumed } from "./resume.ts";

export interface LiveOptions extends FollowOptions {
  /** Tells of this run and its stages, too. */
  readonly run?: RunId | undefined;
}

/** An event of a text/event-stream, with the id behind which to go on. */
interface Told {
  readonly id: string | undefined;
  readonly event: LiveEvent;
}

/** Server-Sent Events as our server writes them: one line each of id, event and data. */
export async function* readEvents(source: AsyncIterable<Uint8Array>): AsyncGenerator<Told> {
  let fields = new Map<string, string>();
  for await (const line of readLines(source)) {
    if (line === "") {
      const [event, data] = [fields.get("event"), fields.get("data")];
      if (event !== undefined && data !== undefined)
        yield { id: fields.get("id"), event: { event, data: JSON.parse(data) as unknown } as LiveEvent };
      fields = new Map();
      continue;
    }
    const at = line.indexOf(":");
    // what begins with a colon is a comment
    if (at > 0) fields.set(line.slice(0, at), line.slice(at + 1).replace(/^ /, ""));
  }
}

export const liveEvents = (
  { send, following }: Pick<Requests, "send" | "following">,
  { run, ...options }: LiveOptions = {},
): AsyncGenerator<LiveEvent> => {
  let after: string | undefined;
  return resumed(async function* (connected): AsyncGenerator<LiveEvent, boolean> {
    const wanted = new URLSearchParams();
    if (run !== undefined) wanted.set("run", String(run));
    if (after !== undefined) wanted.set("after", after);
    const body = await send({ path: `/live?${wanted}`, follow: true, signal: options.signal });
    connected();
    for await (const { id, event } of readEvents(body)) {
      after = id ?? after;
      yield event;
    }
    // it ends when the server does, or when this side was too slow
    return false;
  }, following(options));
};
