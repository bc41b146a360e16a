/** How far records are on disk, and those who wait for it. */
export interface Durable {
  /** All records up to this LSN survive the death of process and machine. */
  readonly lsn: number;
  reached(lsn: number): void;
  onReached(listener: (lsn: number) => void): void;
  when(lsn: number): Promise<void>;
  /** No more will be: those who wait are told why. */
  giveUp(error: unknown): void;
}

/** A listener's error is nobody's here to handle, but must neither stop the journal nor vanish. */
export const tell = (call: () => void): void => {
  try {
    call();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
};

/** What was replayed counts when it is on disk, which the first segment waits for: it begins at 0. */
export const createDurable = (): Durable => {
  const listeners: ((lsn: number) => void)[] = [];
  let waiters: { lsn: number; resolve(): void; reject(error: unknown): void }[] = [];
  let durable = 0;

  return {
    get lsn() {
      return durable;
    },
    reached: (lsn) => {
      durable = lsn;
      for (const listener of listeners) tell(() => listener(lsn));
      if (waiters.length === 0) return;
      const ready = waiters.filter((waiter) => waiter.lsn <= lsn);
      waiters = waiters.filter((waiter) => waiter.lsn > lsn);
      for (const waiter of ready) waiter.resolve();
    },
    onReached: (listener) => void listeners.push(listener),
    when: (lsn) => new Promise((resolve, reject) => waiters.push({ lsn, resolve, reject })),
    giveUp: (error) => {
      const lost = waiters;
      waiters = [];
      for (const waiter of lost) waiter.reject(error);
    },
  };
};
