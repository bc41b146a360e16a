import type { LiveNext } from "./live.ts";

export interface LiveQuery {
  /** The id of the last thing heard; undefined: from now on. */
  readonly after: string | undefined;
  /** The run that is watched beside. */
  readonly run: number | undefined;
}

/** What the API needs of whoever tells viewers. */
/** What the API needs of whoever tells viewers. */
export interface LiveService {
  /** Tells a viewer in frames of a text/event-stream until it has gone. Throws `too-many-viewers`, `no-such-run`. */
  open(query: LiveQuery, viewer: LiveViewer): Promise<void>;
  /** The same events as one answer, for whom no stream reaches: waits until there are any, for a while. */
  next(query: LiveQuery, signal: AbortSignal): Promise<LiveNext>;
}

export interface LiveViewer {
  take(frame: Uint8Array): void;
  /** Bytes that it was given and has not taken. */
  behind(): number;
  /** Ends its stream. */
  drop(): void;
  /** Called once when it has gone. */
  onGone(action: () => void): void;
}
