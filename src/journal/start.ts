import type { SegmentId, SegmentMark } from "./names.ts";

/**
 * What a segment's first record says. The newest segment's START is the journal's table of contents: the snapshot it is
 * based on, then `chain`, each segment with the length up to which it counts. Whatever is not listed, and whatever is
 * beyond a listed length (a predecessor that did not know it was replaced, a write whose fsync failed), never replays.
 */
export interface Start {
  readonly why: "open" | "roll" | "abandon" | "repair" | "salvage";
  readonly firstLsn: number;
  /** The last segment that a snapshot covers; everything before it is gone or may go. */
  readonly base?: SegmentMark | undefined;
  readonly chain: readonly SegmentMark[];
  /** Set with `abandon`: this segment's records after `length` are repeated in the new one. */
  readonly abandoned?: (SegmentId & { readonly length: number }) | undefined;
  /** For people. */
  readonly created: string;
}

type Row = [epoch: number, number: number, length: number, firstLsn: number, lastLsn: number];

const rowOf = (mark: SegmentMark): Row => [mark.epoch, mark.number, mark.length, mark.firstLsn, mark.lastLsn];

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

export const markOf = (value: unknown): SegmentMark | undefined => {
  if (!Array.isArray(value) || value.length !== 5 || !value.every(isCount)) return undefined;
  const [epoch, number, length, firstLsn, lastLsn] = value as Row;
  return { epoch, number, length, firstLsn, lastLsn };
};

export const encodeMark = rowOf;

export const encodeStart = (start: Start): Buffer =>
  Buffer.from(
    JSON.stringify({
      ...start,
      base: start.base === undefined ? undefined : rowOf(start.base),
      chain: start.chain.map(rowOf),
    }),
  );

/** A JSON object, or undefined if the payload is anything else. */
export const decodeObject = (payload: Buffer): Record<string, unknown> | undefined => {
  try {
    const body: unknown = JSON.parse(payload.toString("utf8"));
    return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
};

export const decodeStart = (payload: Buffer): Start | undefined => {
  const body = decodeObject(payload);
  if (body === undefined || !isCount(body["firstLsn"]) || !Array.isArray(body["chain"])) {
    return undefined;
  }
  const base = body["base"] === undefined ? undefined : markOf(body["base"]);
  if (body["base"] !== undefined && base === undefined) return undefined;
  const chain = body["chain"].map(markOf);
  if (chain.includes(undefined)) return undefined;
  return {
    why: body["why"] as Start["why"],
    firstLsn: body["firstLsn"],
    base,
    chain: chain as SegmentMark[],
    abandoned: body["abandoned"] as Start["abandoned"],
    created: String(body["created"] ?? ""),
  };
};
