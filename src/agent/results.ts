import { type PackedColumns, packResults } from "../core/columns.ts";
import type { LostEntry, OutputLost } from "../core/output-lost.ts";
import { type Peak, peakPages } from "../core/peak.ts";
import { USAGE_COLUMNS, type Used, usageOf } from "../core/usage.ts";
import type { Results } from "../protocol/messages.ts";
import type { Row, RunId } from "../core/ids.ts";

/** One finished attempt. */
export interface Result {
  readonly run: RunId;
  readonly row: Row;
  readonly attempt: number;
  readonly ending: number;
  readonly code: number;
  readonly started: number;
  readonly finished: number;
  readonly outAt: number;
  readonly outBytes: number;
  readonly errBytes: number;
  readonly detail?: string | undefined;
  /** Output that was not kept. */
  readonly lost?: OutputLost | null | undefined;
  /** Absent where nobody could tell. */
  readonly peak?: Peak | undefined;
  /** By all its processes; absent where it was not measured. */
  readonly used?: Used | undefined;
}

/** More results than this go out in several messages. */
const PER_MESSAGE = 20_000;

interface Columns {
  readonly rows: Uint32Array;
  readonly attempt: Uint16Array;
  readonly ending: Uint8Array;
  readonly code: Int16Array;
  readonly started: Float64Array;
  readonly finished: Float64Array;
  readonly outAt: Float64Array;
  readonly outBytes: Float64Array;
  readonly errBytes: Float64Array;
  readonly peak: Uint32Array;
  readonly peakBy: Uint8Array;
}

/** What attempts used; made when the first of a batch was measured. */
type UsageColumns = Record<(typeof USAGE_COLUMNS)[number], Uint32Array>;

const makeUsage = (size: number): UsageColumns => ({
  cpu: new Uint32Array(size),
  system: new Uint32Array(size),
  read: new Uint32Array(size),
  written: new Uint32Array(size),
});

const makeColumns = (size: number): Columns => ({
  rows: new Uint32Array(size),
  attempt: new Uint16Array(size),
  ending: new Uint8Array(size),
  code: new Int16Array(size),
  started: new Float64Array(size),
  finished: new Float64Array(size),
  outAt: new Float64Array(size),
  outBytes: new Float64Array(size),
  errBytes: new Float64Array(size),
  peak: new Uint32Array(size),
  peakBy: new Uint8Array(size),
});

/** Up to 64 bytes of a column lie in the heap of V8, which costs a tenth of memory of its own: most batches are small. */
const FEW = 8;
const GROWTH = 8;

const grow = (from: Columns): Columns => {
  const to = makeColumns(from.rows.length * GROWTH);
  for (const name of Object.keys(from) as (keyof Columns)[]) to[name].set(from[name] as never);
  return to;
};

const growUsage = (from: UsageColumns): UsageColumns => {
  const to = makeUsage(from.cpu.length * GROWTH);
  for (const name of USAGE_COLUMNS) to[name].set(from[name]);
  return to;
};

interface Batch {
  columns: Columns;
  usage: UsageColumns | undefined;
  count: number;
  readonly details: [number, string][];
  readonly lost: LostEntry[];
}

/** Copied into their own memory: packed columns must not change when the batch is used again. */
const cut = (run: RunId, { columns, usage, count, details, lost }: Batch): PackedColumns =>
  packResults({
    run,
    rows: columns.rows.slice(0, count),
    attempt: columns.attempt.slice(0, count),
    ending: columns.ending.slice(0, count),
    code: columns.code.slice(0, count),
    started: columns.started.slice(0, count),
    finished: columns.finished.slice(0, count),
    outAt: columns.outAt.slice(0, count),
    outBytes: columns.outBytes.slice(0, count),
    errBytes: columns.errBytes.slice(0, count),
    peak: columns.peak.slice(0, count),
    peakBy: columns.peakBy.slice(0, count),
    ...(usage && {
      cpu: usage.cpu.slice(0, count),
      system: usage.system.slice(0, count),
      read: usage.read.slice(0, count),
      written: usage.written.slice(0, count),
    }),
    details,
    lost,
  });

/**
 * Results on their way to the server: gathered, numbered, and kept until the server says that they are on disk.
 * (agent, seq) makes each message idempotent, so that sending it again after a lost connection changes nothing.
 */
export interface ResultStore {
  add(result: Result): void;
  /** Gathered, but not yet in a message. */
  readonly gathered: number;
  /** Makes messages of what was gathered. */
  take(): Results[];
  acknowledged(seq: number): void;
  readonly unacknowledged: readonly Results[];
  readonly seq: number;
  /** All messages up to this one are on the server's disk. */
  readonly acked: number;
}

export const createResultStore = (): ResultStore => {
  let batches = new Map<number, Batch>();
  let gathered = 0;
  let seq = 0;
  let acked = 0;
  let unacknowledged: Results[] = [];
  let ready: Results[] = [];
  const close = (): void => {
    if (gathered === 0) return;
    seq += 1;
    const message: Results = { t: "results", seq, parts: [...batches].map(([run, batch]) => cut(run, batch)) };
    batches = new Map();
    gathered = 0;
    unacknowledged.push(message);
    ready.push(message);
  };
  return {
    add: (result) => {
      let batch = batches.get(result.run);
      if (batch === undefined) {
        batch = { columns: makeColumns(FEW), usage: undefined, count: 0, details: [], lost: [] };
        batches.set(result.run, batch);
      }
      if (batch.count === batch.columns.rows.length) {
        batch.columns = grow(batch.columns);
        if (batch.usage !== undefined) batch.usage = growUsage(batch.usage);
      }
      const at = batch.count;
      const { columns } = batch;
      columns.rows[at] = result.row;
      columns.attempt[at] = result.attempt;
      columns.ending[at] = result.ending;
      columns.code[at] = result.code;
      columns.started[at] = result.started;
      columns.finished[at] = result.finished;
      columns.outAt[at] = result.outAt;
      columns.outBytes[at] = result.outBytes;
      columns.errBytes[at] = result.errBytes;
      if (result.peak !== undefined) {
        columns.peak[at] = peakPages(result.peak.bytes);
        columns.peakBy[at] = result.peak.by;
      }
      const usage = result.used === undefined ? undefined : usageOf(result.used);
      if (usage !== undefined) {
        const kept = (batch.usage ??= makeUsage(columns.rows.length));
        kept.cpu[at] = usage.cpu;
        kept.system[at] = usage.system;
        kept.read[at] = usage.read;
        kept.written[at] = usage.written;
      }
      if (result.detail !== undefined) batch.details.push([at, result.detail]);
      if (result.lost) batch.lost.push([at, result.lost.stdout, result.lost.stderr, result.lost.reason]);
      batch.count += 1;
      gathered += 1;
      if (gathered >= PER_MESSAGE) close();
    },
    take: () => {
      close();
      const out = ready;
      ready = [];
      return out;
    },
    acknowledged: (upTo) => {
      acked = Math.max(acked, upTo);
      unacknowledged = unacknowledged.filter((message) => message.seq > upTo);
    },
    get gathered() {
      return gathered;
    },
    get unacknowledged() {
      return unacknowledged;
    },
    get seq() {
      return seq;
    },
    get acked() {
      return acked;
    },
  };
};
