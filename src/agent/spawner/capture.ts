import { closeSync, readSync } from "node:fs";
import { type OnReadOpts, Socket, type SocketConstructorOpts } from "node:net";

/** One captured output of a task: the read end of its pipe. */
export interface Capture {
  /** Starts reading as data comes; a task that ends at once is only ever drained. */
  watch(): void;
  resume(): void;
  /** Reads what is there without waiting, and closes. False when back-pressure stopped it halfway: call it again. */
  drain(): boolean;
}

export interface Gate {
  /** The agent cannot keep up: nothing more may be read from tasks. */
  readonly closed: boolean;
}

const CHUNK = 64 * 1024;
/** More than a pipe can hold: whatever comes after this was written by a stranger that got hold of the pipe. */
const LARGEST_PIPE = 1024 * 1024;

/** Shared by all: a chunk is handed over before the next one is read. */
const buffer = Buffer.allocUnsafeSlow(CHUNK);

export const createCapture = (fd: number, gate: Gate, take: (chunk: Buffer) => void): Capture => {
  let socket: Socket | undefined;
  let open = true;
  let drained = 0;

  const close = (): void => {
    if (!open) return;
    open = false;
    if (socket === undefined) closeSync(fd);
    else socket.destroy();
  };

  /** Bytes read; 0 when there are none now and there never will be. */
  const readNow = (): number => {
    try {
      return readSync(fd, buffer, 0, CHUNK, null);
    } catch {
      return 0; // EAGAIN: someone else still holds the other end, but the task has written all it will
    }
  };

  return {
    watch: () => {
      if (!open || socket !== undefined) return;
      const callback = (size: number): boolean => {
        if (open) take(buffer.subarray(0, size));
        return open && !gate.closed;
      };
      const options: SocketConstructorOpts & { onread: OnReadOpts } = {
        fd,
        readable: true,
        writable: false,
        onread: { buffer, callback },
      };
      socket = new Socket(options);
      socket.on("error", close);
      socket.on("end", close);
      if (gate.closed) socket.pause();
    },
    resume: () => {
      if (open) socket?.resume();
    },
    drain: () => {
      if (!open) return true;
      socket?.pause();
      for (let size = 1; size > 0 && drained < LARGEST_PIPE; drained += size) {
        if (gate.closed) return false;
        size = readNow();
        if (size > 0) take(buffer.subarray(0, size));
      }
      close();
      return true;
    },
  };
};
