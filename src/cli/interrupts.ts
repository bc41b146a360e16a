/** Ctrl-C, and what a batch system or a supervisor sends instead of it. */
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * While in force, the first interrupt calls `first` and every later one `again`, instead of ending the process. Returns
 * what puts the earlier handlers back.
 */
export const onInterrupts = (first: () => void, again: () => void): (() => void) => {
  let seen = false;
  const handler = (): void => {
    if (seen) return again();
    seen = true;
    first();
  };
  const before = new Map(SIGNALS.map((signal) => [signal, process.listeners(signal)]));
  for (const signal of SIGNALS) {
    process.removeAllListeners(signal);
    process.on(signal, handler);
  }
  return () => {
    for (const signal of SIGNALS) {
      process.off(signal, handler);
      for (const listener of before.get(signal) ?? []) process.on(signal, listener);
    }
  };
};
