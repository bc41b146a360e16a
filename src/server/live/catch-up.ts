import type { LiveReset } from "../../api/live.ts";
import type { EventView } from "../../api/schemas.ts";
import type { Feed } from "../feed.ts";
import { GREETING, type LiveId, type Made, frameOf, make, writeId } from "./frames.ts";
import type { Pictures } from "./pictures.ts";

/** Where the telling is, and what somebody has missed who was somewhere before. */
export interface CatchUp {
  /** The events that are told at this look; undefined: so much has happened that not even the feed remembers it. */
  advance(): readonly EventView[] | undefined;
  /** A look has found a change. */
  changed(): void;
  /** What happened so far is no news to those who come now. */
  skip(): void;
  /** The id of whoever has heard everything, or everything up to an event. */
  id(seq?: number): string;
  frames(events: readonly EventView[]): string;
  /** How things are, in frames; with the run that somebody watches. */
  present(run: number | undefined): string;
  /** What a stream begins with. */
  past(after: LiveId | undefined): string;
  /** Undefined: nothing so far. */
  missed(after: LiveId, run: number | undefined): readonly Made[] | undefined;
  /** The id of whoever was at `after` and has heard these. */
  idAfter(made: readonly Made[], after: LiveId): string;
}

/** Events that are told at one look; the others come with the next ones. */
export const EVENTS_A_LOOK = 500;

export const createCatchUp = (
  feed: Pick<Feed, "remembered" | "forgotten" | "seq">,
  epoch: number,
  pictures: Pictures,
): CatchUp => {
  let told = feed.seq;
  let look = 1;

  const id = (seq = told): string => writeId({ epoch, seq, look });
  const frames = (events: readonly EventView[]): string =>
    events.map((event) => frameOf(make("event", event), id(event.seq))).join("");
  /** Why whoever is there cannot go on from there. */
  const gapOf = (after: LiveId): LiveReset["reason"] | undefined => {
    if (after.epoch !== epoch || after.seq > feed.seq) return "another-server";
    return after.seq < feed.forgotten ? "too-far-behind" : undefined;
  };
  const since = (seq: number, most: number): EventView[] =>
    feed.remembered(seq, most).filter((event) => event.seq <= told);

  return {
    advance: () => {
      const events = told < feed.forgotten ? undefined : feed.remembered(told, EVENTS_A_LOOK);
      told = events === undefined ? feed.seq : (events.at(-1)?.seq ?? told);
      return events;
    },
    changed: () => {
      look += 1;
    },
    skip: () => {
      told = feed.seq;
      look += 1;
    },
    id,
    frames,
    present: (run) =>
      pictures
        .now(run)
        .map((made) => frameOf(made, id()))
        .join(""),
    past: (after) => {
      if (after === undefined) return GREETING;
      const reason = gapOf(after);
      if (reason !== undefined) return GREETING + frameOf(make("reset", { reason }), id());
      return GREETING + frames(since(after.seq, Infinity));
    },
    missed: (after, run) => {
      const reason = gapOf(after);
      if (reason !== undefined) return [make("reset", { reason }), ...pictures.now(run)];
      const events = since(after.seq, EVENTS_A_LOOK);
      const isBehind = after.look < look;
      if (events.length === 0 && !isBehind) return undefined;
      return [...events.map((event) => make("event", event)), ...(isBehind ? pictures.now(run) : [])];
    },
    idAfter: (made, after) => {
      if (made.some(({ event }) => event === "reset")) return id();
      const last = made.findLast(({ event }) => event === "event");
      return id(last === undefined ? after.seq : (JSON.parse(last.data) as EventView).seq);
    },
  };
};
