import type { Gate } from "./capture.ts";
import { createFrameWriter, type FrameWriter } from "./frames.ts";
import { OUT_HIGH } from "./protocol.ts";

/** Events on their way to the agent: one write per turn of the loop, and a gate that closes when they pile up. */
export interface Outbox {
  readonly writer: FrameWriter;
  readonly gate: Gate;
  /** From here on the listener learns what becomes of the events. */
  listen(listener: OutboxListener): void;
  /** Sends what was written in this turn, at its end. */
  schedule(): void;
  /** Bytes that the agent has not taken yet. */
  queued(): number;
  /** Nobody reads any more: what is queued or comes later is dropped, so that tasks never block on us. */
  abandon(): void;
}

export interface OutboxListener {
  /** The gate is open again. */
  opened(): void;
  /** Nobody will read any more. */
  broken(): void;
  /** The agent has taken everything. */
  emptied(): void;
}

const AT_ONCE = 256 * 1024;

export const createOutbox = (stdout: NodeJS.WritableStream & { readonly writableLength: number }): Outbox => {
  const writer = createFrameWriter();
  const gate = { closed: false };
  let scheduled = false;
  let dropped = false;
  let listener: OutboxListener | undefined;

  const open = (): void => {
    if (!gate.closed) return;
    gate.closed = false;
    listener?.opened();
  };

  const send = (): void => {
    if (writer.size === 0) return;
    const bytes = writer.take();
    if (dropped) return;
    stdout.write(bytes, () => {
      if (stdout.writableLength === 0) listener?.emptied();
    });
    if (stdout.writableLength >= OUT_HIGH) gate.closed = true;
  };

  stdout.on("drain", open);
  stdout.on("error", () => listener?.broken());

  return {
    writer,
    gate,
    listen: (given) => {
      listener = given;
    },
    schedule: () => {
      if (writer.size >= AT_ONCE) send();
      if (scheduled) return;
      scheduled = true;
      setImmediate(() => {
        scheduled = false;
        send();
      });
    },
    queued: () => (dropped ? 0 : stdout.writableLength + writer.size),
    abandon: () => {
      dropped = true;
      open();
    },
  };
};
