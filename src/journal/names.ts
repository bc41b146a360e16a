/** A segment's place in the order of all segments: by epoch, then by number. Numbers never repeat within an epoch. */
export interface SegmentId {
  readonly epoch: number;
  readonly number: number;
}

/** A segment that will never grow: only its first `length` bytes count, holding the records firstLsn…lastLsn. */
export interface SegmentMark extends SegmentId {
  readonly length: number;
  readonly firstLsn: number;
  readonly lastLsn: number;
}

const hex8 = (value: number): string => value.toString(16).padStart(8, "0");

export const baseName = (id: SegmentId): string => `${hex8(id.epoch)}-${hex8(id.number)}`;
export const segmentName = (id: SegmentId): string => `${baseName(id)}.log`;
export const snapshotName = (id: SegmentId): string => `${baseName(id)}.snap`;

/** The file that names the newest segment whose start is on disk. */
export const HEAD_NAME = "head";

const NAME = /^([0-9a-f]{8})-([0-9a-f]{8})\.(log|snap)$/;

export const parseName = (name: string): (SegmentId & { readonly kind: "log" | "snap" }) | undefined => {
  const match = NAME.exec(name);
  if (match === null) return undefined;
  return { epoch: parseInt(match[1]!, 16), number: parseInt(match[2]!, 16), kind: match[3] as "log" | "snap" };
};

export const compareIds = (a: SegmentId, b: SegmentId): number => a.epoch - b.epoch || a.number - b.number;
export const sameId = (a: SegmentId, b: SegmentId): boolean => compareIds(a, b) === 0;

/** The highest epoch in any file name of a journal directory, 0 if there is none. */
export const highestEpoch = (names: readonly string[]): number =>
  names.reduce((highest, name) => Math.max(highest, parseName(name)?.epoch ?? 0), 0);
