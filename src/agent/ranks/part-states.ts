import { Ending, NO_CODE } from "../../core/events.ts";
import type { RanksEndedMessage } from "../../protocol/messages.ts";

/**
 * The states of one agent's part of a task with ranks, and every move between them. Pure.
 *
 *     waiting ──► running ──► writing ──► gone                      on the first node, the head: reports its result
 *        │           │           └──────► telling ──► kept ──► gone  elsewhere: reports its end, and keeps its slots
 *        │           │                                               until the attempt is over
 *        └► holding  └──► leaving ──► gone                           the head's attempt was superseded: reports nothing
 *
 * A failure, here or elsewhere, does not end a running part at once: its processes are ended, and it moves on when the
 * last of them has. Of several failures the first is the task's.
 */

/** How ranks ended, together. */
export interface Outcome {
  readonly ending: number;
  readonly code: number;
  readonly detail: string;
}

export const endedWell = ({ ending, code }: Pick<Outcome, "ending" | "code">): boolean =>
  ending === Ending.EXIT && code === 0;

const ALL_WELL: Outcome = { ending: Ending.EXIT, code: 0, detail: "" };

/** For a part that ends because its attempt is over. */
export const TASK_IS_OVER: Outcome = { ending: Ending.CANCELED, code: NO_CODE, detail: "the task is over" };

export type PartState =
  /**
   * Waits for slots for all its ranks. `othersDone`: the ranks of other agents have ended, or need not be waited for.
   */
  | { readonly is: "waiting"; readonly othersDone: boolean }
  /** Its processes run; the head also waits until the others are done. `over`: the attempt is over elsewhere. */
  | {
      readonly is: "running";
      readonly othersDone: boolean;
      readonly failure: Outcome | undefined;
      readonly over: boolean;
    }
  /** It starts nothing: its slots are for the ranks that a launcher on the first node starts here. */
  | { readonly is: "holding" }
  /** It has ended, and how is known; it reports that only when its output can be read. */
  | { readonly is: "writing"; readonly outcome: Outcome; readonly over: boolean }
  /** It has reported to the server, which has not yet said that the report is on disk. */
  | { readonly is: "telling"; readonly message: RanksEndedMessage; readonly over: boolean }
  | { readonly is: "kept" }
  | { readonly is: "leaving" }
  | { readonly is: "gone" };

export type PartEvent =
  /** It has its slots. `holds`: it has nothing to start. */
  | { readonly type: "begun"; readonly holds: boolean }
  /** One of its processes has ended. */
  | { readonly type: "rank-ended"; readonly failure: Outcome | undefined }
  | { readonly type: "others-done"; readonly failure: Outcome | undefined }
  /** It must end: cancelled, or its pilot ends. */
  | { readonly type: "stopped"; readonly outcome: Outcome }
  /** It has not begun and need not: the server gives it to other agents. */
  | { readonly type: "returned" }
  /** It has reported its result. */
  | { readonly type: "reported" }
  | { readonly type: "told"; readonly message: RanksEndedMessage }
  /** What it reported is on the server's disk. */
  | { readonly type: "kept" }
  /** The attempt has ended for the server, or another has taken its place. */
  | { readonly type: "over" };

/** What moves depend on besides the state. */
export interface PartFacts {
  /** On the first node: it owns the attempt. */
  readonly head: boolean;
  /** Processes that have not ended. */
  readonly live: number;
}

type Running = Extract<PartState, { is: "running" }>;

type Moves = {
  readonly [Is in PartState["is"]]: {
    readonly [Type in PartEvent["type"]]?: (
      state: Extract<PartState, { is: Is }>,
      event: Extract<PartEvent, { type: Type }>,
      facts: PartFacts,
    ) => PartState;
  };
};

const GONE: PartState = { is: "gone" };

const write = (outcome: Outcome, over = false): PartState => ({ is: "writing", outcome, over });

/** Moves on once nothing runs here and everything that it must know is known. */
const whenEnded = (state: Running, { live }: PartFacts): PartState =>
  live > 0 || (state.failure === undefined && !state.othersDone) ? state : write(state.failure ?? ALL_WELL, state.over);

/** An event without a move in a state changes nothing there: it is a repeat, or comes too late. */
const MOVES: Moves = {
  waiting: {
    begun: ({ othersDone }, { holds }, facts) =>
      holds ? { is: "holding" } : whenEnded({ is: "running", othersDone, failure: undefined, over: false }, facts),
    "others-done": (_, { failure }) => (failure === undefined ? { is: "waiting", othersDone: true } : write(failure)),
    stopped: (_, { outcome }) => write(outcome),
    returned: () => GONE,
    over: () => GONE,
  },
  running: {
    "rank-ended": (state, { failure }, facts) => whenEnded({ ...state, failure: state.failure ?? failure }, facts),
    "others-done": (state, { failure }, facts) =>
      whenEnded({ ...state, othersDone: true, failure: state.failure ?? failure }, facts),
    stopped: (state, { outcome }, facts) => whenEnded({ ...state, failure: state.failure ?? outcome }, facts),
    over: (state, _, { head, live }) => {
      if (live === 0) return GONE;
      return head ? { is: "leaving" } : { ...state, failure: state.failure ?? TASK_IS_OVER, over: true };
    },
  },
  holding: {
    stopped: (_, { outcome }) => write(outcome),
    over: () => GONE,
  },
  writing: {
    reported: () => GONE,
    told: ({ over }, { message }) => ({ is: "telling", message, over }),
    // for a part that is not on the first node the server wants to know what was written
    over: (state, _, { head }) => (head ? GONE : { ...state, over: true }),
  },
  telling: {
    kept: ({ over }) => (over ? GONE : { is: "kept" }),
    over: (state) => ({ ...state, over: true }),
  },
  kept: {
    over: () => GONE,
  },
  leaving: {
    "rank-ended": (state, _, { live }) => (live === 0 ? GONE : state),
  },
  gone: {},
};

/** Where the ranks of other agents do not matter, `othersDone` is true from the start. */
export const newPart = (othersDone: boolean): PartState => ({ is: "waiting", othersDone });

export const movePart = (state: PartState, event: PartEvent, facts: PartFacts): PartState => {
  const move = MOVES[state.is][event.type] as
    | ((state: PartState, event: PartEvent, facts: PartFacts) => PartState)
    | undefined;
  return move === undefined ? state : move(state, event, facts);
};
