import type { LiveEvent } from "../../api/live.ts";

/** Frames of a text/event-stream. JSON has no line breaks, so each event is one line of data. */

/** What was made once, as text, to be sent to many. */
export interface Made {
  readonly event: LiveEvent["event"];
  /** JSON. */
  readonly data: string;
}

export const make = <E extends LiveEvent["event"]>(event: E, data: Extract<LiveEvent, { event: E }>["data"]): Made => ({
  event,
  data: JSON.stringify(data),
});

/** Whoever has read this goes on after `id`. */
export const frameOf = ({ event, data }: Made, id: string): string => `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;

/** Says nothing, and that the server is there; the time is how long a client waits before it comes again. */
export const COMMENT = Buffer.from(":\n\n");
export const GREETING = "retry: 1000\n\n";

export interface LiveId {
  readonly epoch: number;
  /** Of the last event of the feed that was told. */
  readonly seq: number;
  /** Of the last look that found a change. */
  readonly look: number;
}

export const writeId = ({ epoch, seq, look }: LiveId): string => `${epoch}-${seq}-${look}`;

/** Of what LIVE_ID has let through. */
export const readId = (text: string): LiveId => {
  const [epoch, seq, look] = text.split("-").map(Number) as [number, number, number];
  return { epoch, seq, look };
};
