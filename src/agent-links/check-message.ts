import { z } from "zod";
import { MOST_TIME, cutText } from "../core/bounds.ts";
import { Ending, NO_CODE } from "../core/events.ts";
import { LOST_REASONS } from "../core/output-lost.ts";
import { PEAK_SOURCES } from "../core/peak.ts";
import type { AgentMessage, Results } from "../protocol/messages.ts";

/** What an agent may say, checked at the edge. Columns of results are checked where they are unpacked (check-results.ts). */
const count = z.number().int().nonnegative().max(0xffff_ffff);
const size = z.number().int().nonnegative();
/** Epoch milliseconds, by the agent's clock. */
const time = z.number().nonnegative().max(MOST_TIME);
const outAt = z.number().int().min(-1);
/** For people; cut if too long, since it may contain a command's own words. */
const reason = z.string().transform(cutText);
const held = z.object({ run: count, rows: z.array(count).max(2_000_000), attempts: z.array(count).max(2_000_000) });
const ranges = z.object({
  run: count,
  ranges: z
    .array(count)
    .max(2_000_000)
    .refine((list) => list.length % 2 === 0, "must be pairs of first row and count"),
});
/** No node has nearly this many resources; amounts are in whole units. */
const MOST_RESOURCES = 1000;
const resources = z
  .record(z.string().max(200), size)
  .refine((all) => Object.keys(all).length <= MOST_RESOURCES, `must have at most ${MOST_RESOURCES} names`);

const units = z.number().int().min(0).max(0xffff_ffff).optional();

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
    resources,
    output: z.string().max(4096),
    epoch: count,
    seq: count,
    held: z.array(held).max(100_000),
    // an agent of the previous version has none
    parts: z.array(held).max(100_000).default([]),
    endsInMs: z.number().min(-MOST_TIME).max(MOST_TIME).optional(),
    taskJob: z.object({ id: count.min(1), element: count }).optional(),
    ahead: z.boolean().optional(),
    singles: z.boolean().optional(),
    alike: z.boolean().optional(),
  }),
  z.object({
    t: z.literal("progress"),
    tasks: z
      .array(
        z.object({
          run: count,
          row: count,
          attempt: count,
          started: time,
          outAt,
          kept: size.optional(),
        }),
      )
      .max(100_000),
    parts: z
      .array(z.object({ run: count, row: count, attempt: count, kept: size }))
      .max(100_000)
      .optional(),
  }),
  z.object({ t: z.literal("returned"), parts: z.array(ranges).max(100_000) }),
  z.object({
    t: z.literal("ranks-ended"),
    run: count,
    row: count,
    attempt: count,
    ending: z
      .number()
      .int()
      .min(0)
      .max(Math.max(...Object.values(Ending))),
    code: z.number().int().min(NO_CODE).max(0xffff),
    detail: reason,
    outAt,
    outBytes: size,
    errBytes: size,
    lost: z
      .object({
        stdout: size,
        stderr: size,
        reason: z
          .number()
          .int()
          .min(0)
          .max(LOST_REASONS.length - 1),
      })
      .optional(),
    peak: z
      .object({
        bytes: size,
        by: z
          .number()
          .int()
          .min(1)
          .max(PEAK_SOURCES.length - 1),
      })
      .optional(),
    cpu: units,
    system: units,
    read: units,
    written: units,
  }),
  z.object({ t: z.literal("leaving"), reason, pilotEnds: z.boolean().optional() }),
  z.object({ t: z.literal("bye"), reason }),
]);

/** No message has more parts than this: at most one for each run. */
const MOST_PARTS = 100_000;

const checkResultsFrame = (message: unknown): Results => {
  const { seq, parts } = message as { seq?: unknown; parts?: unknown };
  if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 1)
    throw new RangeError("malformed results: seq is not a whole number of at least 1");
  if (!Array.isArray(parts) || parts.length > MOST_PARTS)
    throw new RangeError(`malformed results: parts is not a list of at most ${MOST_PARTS}`);
  return { t: "results", seq, parts: parts as Results["parts"] };
};

/** Throws a RangeError that says what is wrong, and in which field. */
export const checkAgentMessage = (message: unknown): AgentMessage => {
  const kind = (message as { t?: unknown } | null | undefined)?.t;
  if (kind === "ping") return { t: "ping" };
  if (kind === "results") return checkResultsFrame(message);
  const checked = Message.safeParse(message);
  if (checked.success) return checked.data;
  const name = typeof kind === "string" ? kind.slice(0, 20) : "message";
  throw new RangeError(`malformed ${name}: ${z.prettifyError(checked.error).slice(0, 300).replaceAll(/\s+/g, " ")}`);
};

/** A spool may contain only results. */
export const checkSpooled = (message: unknown): Results => {
  const checked = checkAgentMessage(message);
  if (checked.t !== "results") throw new RangeError(`a message '${checked.t}' among results`);
  return checked;
};
