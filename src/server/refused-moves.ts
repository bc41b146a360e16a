import type { State } from "../core/state.ts";

/** How tests find such lines in a log. */
export const REFUSED_MOVES = /moves? of states refused/;

/** What the log says about moves that core has refused since the start. Tests fail on it. */
export const refusedMoves = ({ refused }: Pick<State, "refused">, when: string): string =>
  `${when}: ${refused.count} ${refused.count === 1 ? "move" : "moves"} of states refused, the last of ${refused.last}`;
