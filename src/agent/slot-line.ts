/**
 * Who gets free slots. Takers stand in the order in which they joined; while one waits for more than is free, those
 * behind it get nothing, so that they cannot pass it for ever.
 */
export interface SlotTaker {
  /** It waits for slots that must not go to others. */
  readonly waiting: boolean;
  /** Starts whatever gets a slot, and returns how many it started. */
  serve(): number;
}

export interface SlotLine {
  join(taker: SlotTaker): void;
  /** Slots became free, or there is more to start; returns how many it started. */
  serve(): number;
}

export const createSlotLine = (): SlotLine => {
  const takers: SlotTaker[] = [];
  let serving = false;
  return {
    join: (taker) => void takers.push(taker),
    serve: () => {
      // a start may fail at once and free its slot: the taker continues with that slot by itself
      if (serving) return 0;
      serving = true;
      let begun = 0;
      for (const taker of takers) {
        begun += taker.serve();
        if (taker.waiting) break;
      }
      serving = false;
      return begun;
    },
  };
};
