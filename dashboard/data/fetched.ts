import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get } from "./api.ts";
import { generation } from "./live.ts";

/** Something of the server, loaded when it is looked at, and again when asked. What was there stays until the new is. */
export interface Fetched<T> {
  readonly value: T | undefined;
  /** Why there is nothing; undefined while loading, and while the server is away: the banner says so. */
  readonly error: ApiError | undefined;
  readonly again: () => void;
}

interface Kept<T> {
  readonly path: string | undefined;
  readonly value?: T;
  readonly error?: ApiError;
}

/** `every`: milliseconds between two looks, while the page is visible. An undefined path loads nothing. */
export const useFetched = <T>(path: string | undefined, every?: number): Fetched<T> => {
  const [kept, keep] = useState<Kept<T>>({ path: undefined });
  const [round, setRound] = useState(0);
  const inFlight = useRef(false);
  const loaded = generation.value;
  useEffect(() => {
    if (path === undefined) return;
    const control = new AbortController();
    inFlight.current = true;
    get<T>(path, control.signal)
      .then(
        (value) => keep({ path, value }),
        (error: unknown) => {
          if (error instanceof ApiError && !control.signal.aborted)
            keep((before) => (before.path === path && before.value !== undefined ? before : { path, error }));
        },
      )
      .finally(() => {
        if (!control.signal.aborted) inFlight.current = false;
      });
    return () => control.abort();
  }, [path, round, loaded]);
  useEffect(() => {
    if (every === undefined || path === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden && !inFlight.current) setRound((before) => before + 1);
    }, every);
    return () => clearInterval(timer);
  }, [path, every]);
  const current = kept.path === path;
  return {
    value: current ? kept.value : undefined,
    error: current ? kept.error : undefined,
    again: () => setRound((before) => before + 1),
  };
};
