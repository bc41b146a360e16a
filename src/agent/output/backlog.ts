/** Bytes of output in memory, on their way to the file. */
export interface Backlog {
  readonly bytes: number;
  add(bytes: number): void;
  release(bytes: number): void;
  /** Null while there is room; else resolves when half of it is free again. */
  drained(): Promise<void> | null;
}

export const createBacklog = (highWaterBytes: number): Backlog => {
  let pending = 0;
  let waiting: { readonly promise: Promise<void>; readonly resolve: () => void } | null = null;
  return {
    get bytes() {
      return pending;
    },
    add: (bytes) => {
      pending += bytes;
    },
    release: (bytes) => {
      pending -= bytes;
      if (waiting === null || pending > highWaterBytes / 2) return;
      waiting.resolve();
      waiting = null;
    },
    drained: () => {
      if (pending <= highWaterBytes) return null;
      if (waiting === null) {
        let resolve!: () => void;
        const promise = new Promise<void>((settled) => (resolve = settled));
        waiting = { promise, resolve };
      }
      return waiting.promise;
    },
  };
};
