/** How far records are on disk, and who waits for that. */
export interface Durable {
  /** All records up to this LSN survive the death of process and machine. */
  readonly lsn: number;
  reached(lsn: number): void;
  onReached(listener: (lsn: number) => void): void;
  when(lsn: number): Promise<void>;
  /** Nothing more will reach the disk: those who wait learn why. */
  giveUp(error: unknown): void;
}

/** Listeners handle their own errors: one here must neither stop the journal nor vanish. */
export const tell = (call: () => void): void => {
  try {
    call();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
};

/** Begins at 0: what was replayed counts only when it is on disk, and the first segment waits for that. */
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
