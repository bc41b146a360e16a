import { Ending, NO_CODE } from "../../core/events.ts";
import type { AttemptName, Progress, Ranks, RanksDone, RanksEndedMessage } from "../../protocol/messages.ts";
import type { NodeClock } from "../node-clock.ts";
import type { SlotTaker } from "../slot-line.ts";
import type { Slot, SlotPool } from "../slots.ts";
import type { RunTemplate } from "../templates.ts";
import { createPartActions, keyOf, nameOf, type PartActionsOptions } from "./part-actions.ts";
import { createPart, type Part } from "./part.ts";
import { endedWell, type Outcome } from "./part-states.ts";
import type { Row, RunId } from "../../core/ids.ts";

/**
 * This agent's parts of tasks whose ranks run on several agents. A part takes slots for all its ranks at once, before
 * anything else is started here. The part on the first node owns the attempt: it reports the result when its own ranks
 * have ended and the others are known to be done, or as soon as any rank has failed. A part elsewhere reports the end
 * of its ranks to the server, again and again until that is on disk, and keeps its slots until the attempt is over.
 */
export interface RankParts extends SlotTaker {
  readonly size: number;
  take(message: Ranks, run: RunTemplate): void;
  othersDone(message: RanksDone): void;
  kept(run: RunId, row: Row, attempt: number): void;
  over(run: RunId, row: Row, attempt: number): void;
  /** Ends an attempt that this agent owns; false if it has none. */
  stop(run: RunId, row: Row, attempt: number, superseded: boolean): boolean;
  /** Gives back parts that have not begun; `now` ends those that run, at no cost to them. */
  drain(now: boolean, reason: string, ending?: number): void;
  /** Attempts that this agent owns, and those of others in which it has a part. */
  own(): readonly AttemptName[];
  others(): readonly AttemptName[];
  /** To be sent again after a lost connection. */
  unheard(): readonly RanksEndedMessage[];
  progress(): Progress["tasks"][number][];
  progressOfOthers(): NonNullable<Progress["parts"]>[number][];
}

const CANCELED: Outcome = { ending: Ending.CANCELED, code: NO_CODE, detail: "cancelled" };

/** Slots for all ranks of a part, or none. */
const takeSlots = (pool: SlotPool, { ranks, node, resources }: Ranks): readonly Slot[] | undefined => {
  const slots: Slot[] = [];
  for (let i = 0; i < ranks[node]!; i += 1) {
    const slot = pool.allocate(resources);
    if (slot === undefined) {
      for (const taken of slots) pool.release(taken);
      return undefined;
    }
    slots.push(slot);
  }
  return slots;
};

const progressOfOwn = (part: Part, tail: number, clock: NodeClock): Progress["tasks"] => {
  if (!part.head || part.state.is !== "running" || part.reported === tail) return [];
  part.reported = tail;
  const kept = part.output.current?.taken ?? 0;
  return [{ ...nameOf(part), started: clock.at(part.started), outAt: tail, kept }];
};

const progressOfOther = (part: Part, tail: number): NonNullable<Progress["parts"]> => {
  if (part.head || part.state.is !== "running" || tail < 0 || part.reported === tail) return [];
  part.reported = tail;
  return [{ ...nameOf(part), kept: part.output.current!.taken }];
};

export const createRankParts = (options: PartActionsOptions): RankParts => {
  const { pool, output, clock } = options;
  const parts = new Map<string, Part>();
  const waiting = new Set<Part>();
  const { begin, over, stop, giveBack, othersDone, kept } = createPartActions(options, { parts, waiting });

  const tailOf = (part: Part): number => (part.output.current === undefined ? -1 : output.tail(part.output.current));

  return {
    get size() {
      return parts.size;
    },
    get waiting() {
      return waiting.size > 0;
    },

    take: (message, run) => {
      if (parts.has(keyOf(message))) return; // sent twice
      for (const before of parts.values())
        if (before.message.run === message.run && before.message.row === message.row) over(before);
      const part = createPart(message, run);
      parts.set(keyOf(message), part);
      waiting.add(part);
    },

    serve: () => {
      let begun = 0;
      for (const part of waiting) {
        const slots = takeSlots(pool, part.message);
        if (slots === undefined) break;
        begin(part, slots);
        begun += 1;
      }
      return begun;
    },

    othersDone: ({ ending, code, detail, ...name }) => {
      const part = parts.get(keyOf(name));
      if (part === undefined) return;
      othersDone(part, endedWell({ ending, code }) ? undefined : { ending, code, detail });
    },

    kept: (run, row, attempt) => {
      const part = parts.get(keyOf({ run, row, attempt }));
      if (part !== undefined) kept(part);
    },

    over: (run, row, attempt) => {
      const part = parts.get(keyOf({ run, row, attempt }));
      if (part !== undefined) over(part);
    },

    stop: (run, row, attempt, superseded) => {
      const part = parts.get(keyOf({ run, row, attempt }));
      if (part === undefined || !part.head) return false;
      if (superseded) over(part);
      else if (part.state.is === "waiting") giveBack(part);
      else stop(part, CANCELED);
      return true;
    },

    drain: (now, reason, ending = Ending.INTERRUPTED) => {
      // none of them may begin with the slots of another that is given back
      waiting.clear();
      for (const part of parts.values()) {
        const waits = part.state.is === "waiting";
        if (waits && part.head) giveBack(part);
        else if (waits || now) stop(part, { ending, code: NO_CODE, detail: reason });
      }
    },

    own: () => [...parts.values()].filter((part) => part.head).map(nameOf),

    others: () => [...parts.values()].filter((part) => !part.head).map(nameOf),

    unheard: () => [...parts.values()].flatMap(({ state }) => (state.is === "telling" ? [state.message] : [])),

    progress: () => [...parts.values()].flatMap((part) => progressOfOwn(part, tailOf(part), clock)),

    progressOfOthers: () => [...parts.values()].flatMap((part) => progressOfOther(part, tailOf(part))),
  };
};
