import type { LiveService, LiveViewer } from "../../api/live-service.ts";
import type { LiveEvent } from "../../api/live.ts";
import { SlipwayError } from "../../errors.ts";
import type { Feed } from "../feed.ts";
import { createCatchUp } from "./catch-up.ts";
import { COMMENT, type LiveId, type Made, frameOf, make, readId } from "./frames.ts";
import { type PicturesOptions, createPictures } from "./pictures.ts";

/**
 * Tells viewers what happens. Once a second, while there are any, it looks: what has changed is made into one text and
 * handed to all of them, so that a hundred viewers cost a hundred writes and no more. Events come from what the feed
 * remembers: nobody follows it here, so successes are not published for a viewer's sake. A viewer that does not read is
 * dropped (rule 11), and goes on from its last id.
 */

export interface LiveOptions extends PicturesOptions {
  readonly feed: Pick<Feed, "remembered" | "forgotten" | "seq">;
  readonly epoch: number;
  readonly lookMs?: number;
  readonly waitMs?: number;
}

export interface Live extends LiveService {
  readonly viewers: number;
  close(): void;
}

export const MOST_VIEWERS = 256;
/** Bytes that a viewer may leave unread from one look to the next. */
export const MOST_BEHIND = 256 * 1024;
const LOOK_MS = 1000;
const COMMENT_LOOKS = 10;
const WAIT_MS = 25_000;
const POLL_LOOKS = 30;

interface Stream {
  readonly viewer: LiveViewer;
  readonly run: number | undefined;
  /** It was told a lot at once when it came: it has until the look after the next to read that. */
  isNew: boolean;
}

/** Whoever asks again and again: waits for the next change. */
interface Poller {
  readonly run: number | undefined;
  readonly wake: () => void;
}

const asEvents = (made: readonly Made[]): LiveEvent[] =>
  made.map(({ event, data }) => ({ event, data: JSON.parse(data) as unknown }) as LiveEvent);

export const createLive = (options: LiveOptions): Live => {
  const pictures = createPictures(options);
  const at = createCatchUp(options.feed, options.epoch, pictures);
  const streams = new Set<Stream>();
  const pollers = new Set<Poller>();
  let looks = 0;
  let timer: NodeJS.Timeout | undefined;
  /** Looks that are still made although nobody is there: who polls comes back in a moment. */
  let lingering = 0;

  /** One text for all; for each run that is watched and has changed, one more with that at its end. */
  const tellAll = (common: string, runs: ReadonlyMap<number, Made>): void => {
    const forAll = common === "" ? undefined : Buffer.from(common);
    const forRun = new Map([...runs].map(([id, made]) => [id, Buffer.from(common + frameOf(made, at.id()))]));
    for (const { viewer, run } of streams) {
      const frame = (run === undefined ? undefined : forRun.get(run)) ?? forAll;
      if (frame !== undefined) viewer.take(frame);
    }
  };

  const dropSlow = (): void => {
    for (const stream of streams) {
      if (!stream.isNew && stream.viewer.behind() > MOST_BEHIND) stream.viewer.drop();
      stream.isNew = false;
    }
  };

  const lookNow = (): void => {
    looks += 1;
    dropSlow();
    const { overview, runs } = pictures.look([...streams, ...pollers].flatMap(({ run }) => run ?? []));
    if (overview !== undefined || runs.size > 0) at.changed();
    const events = at.advance();
    if (events === undefined)
      tellAll(frameOf(make("reset", { reason: "too-far-behind" }), at.id()) + at.present(undefined), runs);
    else tellAll(at.frames(events) + (overview === undefined ? "" : frameOf(overview, at.id())), runs);
    if (looks % COMMENT_LOOKS === 0) for (const { viewer } of streams) viewer.take(COMMENT);
    if (events === undefined || events.length > 0 || overview !== undefined || runs.size > 0)
      for (const { wake } of pollers) wake();
    lingering = pollers.size > 0 ? POLL_LOOKS : Math.max(0, lingering - 1);
    if (streams.size === 0 && pollers.size === 0 && lingering === 0) stop();
  };

  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
    pictures.forget();
  };

  const begin = (): void => {
    if (timer !== undefined) return;
    at.skip();
    timer = setInterval(lookNow, options.lookMs ?? LOOK_MS).unref();
  };

  const checkRoom = (): void => {
    const count = streams.size + pollers.size;
    if (count >= MOST_VIEWERS) throw new SlipwayError("too-many-viewers", { count });
  };

  /** Whether there is room, and the run; both again after the wait for the run. */
  const letIn = async (run: number | undefined): Promise<void> => {
    checkRoom();
    if (run !== undefined) await pictures.meet(run);
    checkRoom();
    begin();
  };

  const waitFor = (after: LiveId, run: number | undefined, signal: AbortSignal): Promise<readonly Made[]> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timeout);
        pollers.delete(poller);
        signal.removeEventListener("abort", done);
        resolve(at.missed(after, run) ?? []);
      };
      const poller: Poller = { run, wake: done };
      const timeout = setTimeout(done, options.waitMs ?? WAIT_MS).unref();
      pollers.add(poller);
      signal.addEventListener("abort", done, { once: true });
    });

  return {
    get viewers() {
      return streams.size + pollers.size;
    },
    open: async ({ after, run }, viewer) => {
      await letIn(run);
      const stream: Stream = { viewer, run, isNew: true };
      streams.add(stream);
      viewer.onGone(() => streams.delete(stream));
      viewer.take(Buffer.from(at.past(after === undefined ? undefined : readId(after)) + at.present(run)));
    },
    next: async ({ after, run }, signal) => {
      const isNew = run !== undefined && !pictures.knows(run);
      await letIn(run);
      lingering = POLL_LOOKS;
      if (after === undefined) return { id: at.id(), events: asEvents(pictures.now(run)) };
      // of a run that nobody looked at so far, all is news
      const from = { ...readId(after), ...(isNew ? { look: 0 } : {}) };
      const made = at.missed(from, run) ?? (await waitFor(from, run, signal));
      return { id: at.idAfter(made, from), events: asEvents(made) };
    },
    close: () => {
      stop();
      for (const { wake } of pollers) wake();
    },
  };
};
