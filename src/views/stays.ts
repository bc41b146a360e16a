import type { StayView } from "../api/job-details.ts";
import { isoTime } from "./views.ts";

/** How long it was in each state; in the last one until now, unless that is its end. */
export const staysOf = (
  came: readonly (readonly [state: string, at: number])[],
  now: number,
  isOver: boolean,
): StayView[] =>
  came.map(([state, at], i) => {
    const until = came[i + 1]?.[1] ?? (isOver ? undefined : now);
    return {
      state,
      at: isoTime(at),
      seconds: until === undefined ? null : Math.max(0, Math.round(until - at)) / 1000,
    };
  });
