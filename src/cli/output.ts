import type { Writable } from "node:stream";

/** A stream of this process; if it is a terminal, with its facts. */
export type Sink = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/**
 * Standard output or error. A reader may go away (`slipway list | head`): then what follows is dropped and
 * `closed` aborts, so that a command that follows something stops following.
 */
export interface Output {
  readonly isTerminal: boolean;
  readonly closed: AbortSignal;
  /** Columns of the terminal now; undefined when this is a file or a pipe. */
  columns(): number | undefined;
  line(text: string): void;
  text(text: string): void;
  /** Resolves when the stream takes more: output is never piled up in memory. */
  bytes(data: Uint8Array): Promise<void>;
  /** Resolves when everything written has left this process. */
  flushed(): Promise<void>;
}

export const outputTo = (sink: Sink): Output => {
  const gone = new AbortController();
  sink.on("error", (error: NodeJS.ErrnoException) => {
    gone.abort(error);
    // A full disk under a redirected output is worth an exit status; a closed pipe is not.
    if (error.code !== "EPIPE" && error.code !== "EIO") process.exitCode = 1;
  });
  const write = (data: string | Uint8Array): boolean => (gone.signal.aborted ? true : sink.write(data));
  return {
    isTerminal: sink.isTTY === true,
    closed: gone.signal,
    columns: () => (sink.isTTY === true && (sink.columns ?? 0) > 0 ? sink.columns : undefined),
    line: (text) => void write(`${text}\n`),
    text: (text) => void write(text),
    bytes: async (data) => {
      if (write(data)) return;
      await new Promise<void>((resolve) => {
        const go = (): void => {
          sink.off("drain", go);
          sink.off("error", go);
          sink.off("close", go);
          resolve();
        };
        sink.once("drain", go);
        sink.once("error", go);
        sink.once("close", go);
      });
    },
    flushed: () =>
      new Promise((resolve) => {
        if (gone.signal.aborted || sink.writableLength === 0) resolve();
        else sink.write("", () => resolve());
      }),
  };
};
