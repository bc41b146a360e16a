import { batch, signal } from "@preact/signals";
import type { OverviewView } from "../../src/api/overview.ts";
import type { EventView } from "../../src/api/schemas.ts";
import type { LiveRun } from "../../src/api/live.ts";
import { ApiError, ask, get, query, texts } from "./api.ts";
import { backoff } from "./backoff.ts";
import { signedIn } from "./session.ts";
import { createEventReader } from "./sse.ts";

/**
 * What the server tells by itself, and whether it does.
 *
 *   connecting ──► live ──► away ──► live …        the stream, with the last id, so that nothing is missed or told twice
 *        └────────► polling ──► away ──► …         where a proxy keeps back what it should pass on: long polls
 */
export type Link = "connecting" | "live" | "polling" | "away";

export const link = signal<Link>("connecting");
export const overview = signal<OverviewView | undefined>(undefined);
export const liveRun = signal<LiveRun | undefined>(undefined);
/** Newest first. */
export const feed = signal<readonly EventView[]>([]);
/** Counts up when what was loaded may be of another time: after an absence, or with another server. */
export const generation = signal(0);

const MOST_FEED = 200;
/** The server says something every 10 s; whoever has heard nothing for so long is not connected. */
const SILENT = 25_000;
/** A stream that gives nothing at all by then is kept back by a proxy. */
const FIRST_WORD = 12_000;
const STREAM_AGAIN = 5 * 60_000;

/** Why a connection is given up: it is silent, or another run is to be watched, at once. */
const IS_SILENT = new Error("silent");
const ANOTHER_RUN = new Error("another run");

let lastId: string | undefined;
let watched: number | undefined;
let attempt = new AbortController();
let wakeUp = (): void => undefined;

/** Also tell of this run, once a second at most. */
export const watchRun = (run: number | undefined): void => {
  if (run === watched) return;
  watched = run;
  liveRun.value = undefined;
  attempt.abort(ANOTHER_RUN);
  wakeUp();
};

const take = (event: string, data: unknown, id: string | undefined): void => {
  if (id !== undefined && id !== "") lastId = id;
  switch (event) {
    case "overview":
      overview.value = data as OverviewView;
      return;
    case "run": {
      const told = data as LiveRun;
      if (told.run.id === watched) liveRun.value = told;
      return;
    }
    case "event":
      feed.value = [data as EventView, ...feed.value].slice(0, MOST_FEED);
      return;
    case "reset":
      generation.value++;
  }
};

const heard = (how: "live" | "polling"): void =>
  batch(() => {
    if (link.value === "away") generation.value++;
    link.value = how;
  });

/** A timer that calls unless it is fed. */
const watchdog = (ms: number, call: () => void) => {
  let timer = setTimeout(call, ms);
  return {
    feed: (next: number): void => {
      clearTimeout(timer);
      timer = setTimeout(call, next);
    },
    stop: (): void => clearTimeout(timer),
  };
};

const where = (): string => query({ run: watched, after: lastId });

/** Reads the stream until it ends. True: it gave nothing, so that a proxy may be in the way. */
const stream = async (control: AbortController): Promise<boolean> => {
  let words = 0;
  const dog = watchdog(FIRST_WORD, () => control.abort(IS_SILENT));
  try {
    const answer = await ask(`live${where()}`, { signal: control.signal, headers: { accept: "text/event-stream" } });
    const read = createEventReader();
    for await (const piece of texts(answer)) {
      words += piece.length;
      dog.feed(SILENT);
      heard("live");
      const events = read(piece);
      batch(() => {
        for (const { event, data, id } of events) take(event, JSON.parse(data), id);
      });
    }
    return false;
  } catch (error) {
    if (words === 0 && control.signal.reason === IS_SILENT) return true;
    throw error;
  } finally {
    dog.stop();
  }
};

interface Polled {
  readonly id: string;
  readonly events: readonly { readonly event: string; readonly data: unknown }[];
}

const pollUntil = async (control: AbortController, until: number): Promise<void> => {
  while (Date.now() < until) {
    const dog = watchdog(SILENT + FIRST_WORD, () => control.abort(IS_SILENT));
    const { id, events } = await get<Polled>(`live/next${where()}`, control.signal).finally(() => dog.stop());
    heard("polling");
    batch(() => {
      for (const { event, data } of events) take(event, data, undefined);
    });
    lastId = String(id);
  }
};

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wakeUp = () => {
      clearTimeout(timer);
      resolve();
    };
  });

/** Before the stream says anything, and where it does not. */
const first = async (): Promise<void> => {
  overview.value = await get<OverviewView>("overview");
};

export const goLive = async (): Promise<never> => {
  addEventListener("online", () => wakeUp());
  document.addEventListener("visibilitychange", () => document.hidden || wakeUp());
  void first().catch(() => undefined);
  let failures = 0;
  for (;;) {
    attempt = new AbortController();
    try {
      if (await stream(attempt)) {
        attempt = new AbortController();
        await pollUntil(attempt, Date.now() + STREAM_AGAIN);
      }
      failures = 0;
    } catch (error) {
      if (attempt.signal.reason === ANOTHER_RUN) continue;
      failures++;
      if (error instanceof ApiError && error.status === 401) await untilSignedIn();
      else if (failures > 1 || link.value !== "connecting") link.value = "away";
    }
    await pause(backoff(failures));
  }
};

const untilSignedIn = (): Promise<void> =>
  new Promise((resolve) => {
    const stop = signedIn.subscribe((yes) => {
      if (yes) queueMicrotask(() => (stop(), resolve()));
    });
  });
