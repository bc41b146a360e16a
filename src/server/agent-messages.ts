import { z } from "zod";
import type { AgentMessage } from "../protocol/messages.ts";

/** What an agent may say, checked at the edge. Columns of results are checked where they are unpacked. */
const count = z.number().int().nonnegative().max(0xffff_ffff);
const held = z.object({ run: count, rows: z.array(count).max(2_000_000), attempts: z.array(count).max(2_000_000) });
const ranges = z.object({ run: count, ranges: z.array(count).max(2_000_000) });

const Message = z.discriminatedUnion("t", [
  z.object({
    t: z.literal("hello"),
    version: z.number().int(),
    slipway: z.string().max(100),
    token: z.string().max(200),
    uuid: z.uuid(),
    pilot: count,
    cluster: z.string().max(200).optional(),
    queue: z.string().max(200).optional(),
    host: z.string().max(255),
    pid: count,
    resources: z.record(z.string().max(200), z.number().int().nonnegative()),
    output: z.string().max(4096),
    epoch: count,
    seq: count,
    held: z.array(held).max(100_000),
    // an agent of the version before has none
    parts: z.array(held).max(100_000).default([]),
    endsInMs: z.number().optional(),
  }),
  z.object({
    t: z.literal("progress"),
    tasks: z
      .array(z.object({ run: count, row: count, attempt: count, started: z.number(), outAt: z.number() }))
      .max(100_000),
  }),
  z.object({ t: z.literal("returned"), parts: z.array(ranges).max(100_000) }),
  z.object({
    t: z.literal("ranks-ended"),
    run: count,
    row: count,
    attempt: count,
    ending: z.number().int().min(0).max(255),
    code: z.number().int().min(-1000).max(0xffff),
    detail: z.string().max(2000),
    outAt: z.number(),
    outBytes: z.number(),
    errBytes: z.number(),
  }),
  z.object({ t: z.literal("leaving"), reason: z.string().max(2000) }),
  z.object({ t: z.literal("bye"), reason: z.string().max(2000) }),
]);

/** Throws a RangeError that says what is wrong. */
export const checkAgentMessage = (message: unknown): AgentMessage => {
  const kind = (message as { t?: unknown } | null | undefined)?.t;
  if (kind === "ping") return { t: "ping" };
  if (kind === "results") {
    const { seq, parts } = message as { seq?: unknown; parts?: unknown };
    if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 1 || !Array.isArray(parts))
      throw new RangeError("malformed results");
    return message as AgentMessage;
  }
  const checked = Message.safeParse(message);
  if (!checked.success) throw new RangeError(`a malformed message: ${z.prettifyError(checked.error).slice(0, 300)}`);
  return checked.data;
};
