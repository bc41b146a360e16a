import type { Journal } from "../journal/journal.ts";

/** What must wait for the disk before the outside may know it: in order, each as soon as its record is durable. */
export interface Outbox {
  /** Runs when everything appended so far, or up to `lsn`, is on disk. */
  afterDurable(action: () => void, lsn?: number): void;
}

export const createOutbox = (journal: Journal): Outbox => {
  const waiting: { lsn: number; action: () => void }[] = [];
  let head = 0;

  journal.onDurable((lsn) => {
    while (head < waiting.length && waiting[head]!.lsn <= lsn) {
      const { action } = waiting[head]!;
      head += 1;
      action();
    }
    if (head === waiting.length) {
      waiting.length = 0;
      head = 0;
    }
  });

  return {
    afterDurable: (action, lsn = journal.appended) => {
      if (journal.durable >= lsn && head === waiting.length) action();
      else waiting.push({ lsn, action });
    },
  };
};
