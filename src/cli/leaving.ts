import type { Context } from "./context.ts";
import type { Display } from "./display.ts";
import { canReadKeys, onKeys } from "./keys.ts";

/** `d` leaves the progress bar; the run goes on without it. */
export interface Leaving {
  /** Aborts when the user has left. */
  readonly signal: AbortSignal;
  /** Gives the terminal back. */
  stop(): void;
}

/** `says`: what Ctrl-C does here; `left` is aborted when the user leaves. */
export const offerLeaving = (
  context: Context,
  display: Display,
  says: string,
  left = new AbortController(),
): Leaving => {
  if (context.quiet || context.json || !canReadKeys()) return { signal: left.signal, stop: () => undefined };
  display.say(`d leaves the bar and the run continues; ${says}`);
  const stop = onKeys((key) => {
    if (key === "d" || key === "D") left.abort();
  });
  return { signal: left.signal, stop };
};

/** How to come back. */
export const tellLeft = ({ note }: Pick<Context, "note">, id: number): void =>
  note(`run ${id} continues: \`slipway attach ${id}\` follows it again, \`slipway cancel ${id}\` ends it`);
