import { AgedIndex, grownTo } from "./aged-index.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { type Lanes, finish, mixText, newLanes } from "./hash.ts";
import type { Group, Run } from "./run.ts";
import type { State } from "./state.ts";
import { filesOf } from "./task-files.ts";
import type { Row } from "./ids.ts";

/**
 * What the declared outputs of tasks came from, across runs: by the hash of a path, the fingerprint of the task that succeeded in
 * making it. It is part of the state, so that no crash comes between the two ways to be wrong: an attempt that is given to an
 * agent opens its outputs first, and only its own success closes them again (decision 0046). Bounded: the oldest are forgotten,
 * and a task whose success is forgotten runs again.
 */

/** Files. Under 100 MB. */
export const MOST_SUCCESSES = 2_000_000;

/** What one takes when it is written. */
const ENTRY_BYTES = 28;
const PER_PART = 50_000;

const path = newLanes();

const keyOf = (text: string): Lanes => {
  Object.assign(path, newLanes());
  mixText(path, text);
  finish(path, path);
  return path;
};

export class Successes {
  readonly #index: AgedIndex;
  #lo = new Int32Array(0);
  #hi = new Int32Array(0);
  /** The turns at which the last attempt at it began, and succeeded; 0: it has not. */
  #began = new Uint32Array(0);
  #ended = new Uint32Array(0);
  /** Whose attempt that is. */
  #owner = new Uint32Array(0);
  /** Counts what was noted, in place of a clock: which came first is all that matters. */
  #turn = 0;

  constructor(limit = MOST_SUCCESSES) {
    this.#index = new AgedIndex(limit, (room) => {
      this.#lo = grownTo(this.#lo, room);
      this.#hi = grownTo(this.#hi, room);
      this.#began = grownTo(this.#began, room);
      this.#ended = grownTo(this.#ended, room);
      this.#owner = grownTo(this.#owner, room);
    });
  }

  get size(): number {
    return this.#index.size;
  }

  /** Memory it takes. */
  get bytes(): number {
    return this.#index.bytes + 5 * this.#lo.byteLength;
  }

  begin(file: string, owner: number): void {
    this.#turn += 1;
    const entry = this.#take(file);
    this.#began[entry] = this.#turn;
    this.#ended[entry] = 0;
    this.#owner[entry] = owner;
  }

  /** Another attempt at the same file began after this one, and nobody knows what is in it now. */
  over(file: string, owner: number): void {
    const { lo, hi } = keyOf(file);
    const entry = this.#index.find(lo, hi);
    if (entry >= 0 && this.#owner[entry] !== owner) this.#ended[entry] = 0;
  }

  succeed(file: string, owner: number, { lo, hi }: Lanes): void {
    const key = keyOf(file);
    const entry = this.#index.find(key.lo, key.hi);
    // forgotten meanwhile, or somebody else's
    if (entry < 0 || this.#owner[entry] !== owner) return;
    this.#turn += 1;
    this.#lo[entry] = lo;
    this.#hi[entry] = hi;
    this.#ended[entry] = this.#turn;
  }

  /** It was of use: it is the newest again. */
  use(file: string): void {
    const { lo, hi } = keyOf(file);
    if (this.#index.find(lo, hi) >= 0) this.#index.take(lo, hi);
  }

  /** What is known of a file; undefined: nothing. `ended` is 0 while the last attempt at it has not succeeded. */
  of(file: string): Success | undefined {
    const { lo, hi } = keyOf(file);
    const entry = this.#index.find(lo, hi);
    if (entry < 0) return undefined;
    return { lo: this.#lo[entry]!, hi: this.#hi[entry]!, began: this.#began[entry]!, ended: this.#ended[entry]! };
  }

  #take(file: string): number {
    const { lo, hi } = keyOf(file);
    return this.#index.take(lo, hi);
  }

  /** All of them as bytes, oldest first, in parts: little-endian, ENTRY_BYTES each. */
  *encode(): Generator<{ readonly turn: number; readonly entries: Uint8Array }> {
    let view = new DataView(new ArrayBuffer(PER_PART * ENTRY_BYTES));
    let at = 0;
    const cut = () => ({ turn: this.#turn, entries: new Uint8Array(view.buffer.slice(0, at)) });
    for (const entry of this.#index.oldestFirst()) {
      const [lo, hi] = this.#index.keyOf(entry);
      view.setInt32(at, lo, true);
      view.setInt32(at + 4, hi, true);
      view.setInt32(at + 8, this.#lo[entry]!, true);
      view.setInt32(at + 12, this.#hi[entry]!, true);
      view.setUint32(at + 16, this.#began[entry]!, true);
      view.setUint32(at + 20, this.#ended[entry]!, true);
      view.setUint32(at + 24, this.#owner[entry]!, true);
      at += ENTRY_BYTES;
      if (at < view.byteLength) continue;
      yield cut();
      view = new DataView(new ArrayBuffer(PER_PART * ENTRY_BYTES));
      at = 0;
    }
    if (at > 0) yield cut();
  }

  /** Equal for equal ones, as far as 64 bits tell. */
  digest(): string {
    const lanes = newLanes();
    for (const entry of this.#index.oldestFirst())
      mixText(
        lanes,
        [...this.#index.keyOf(entry), this.#lo[entry], this.#hi[entry], this.#began[entry], this.#ended[entry]].join(),
      );
    finish(lanes, lanes);
    return `${this.size} files, ${lanes.lo} ${lanes.hi}`;
  }

  /** Adds a part that `encode` made. */
  addPart({ turn, entries }: { readonly turn: number; readonly entries: Uint8Array }): void {
    this.#turn = turn;
    const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength);
    for (let at = 0; at + ENTRY_BYTES <= view.byteLength; at += ENTRY_BYTES) {
      const entry = this.#index.take(view.getInt32(at, true), view.getInt32(at + 4, true));
      this.#lo[entry] = view.getInt32(at + 8, true);
      this.#hi[entry] = view.getInt32(at + 12, true);
      this.#began[entry] = view.getUint32(at + 16, true);
      this.#ended[entry] = view.getUint32(at + 20, true);
      this.#owner[entry] = view.getUint32(at + 24, true);
    }
  }
}

export interface Success extends Readonly<Lanes> {
  readonly began: number;
  readonly ended: number;
}

const ownerOf = (run: Run, row: Row): number => (Math.imul(run.id, 0x9e3779b1) ^ Math.imul(row + 1, 0x85ebca77)) >>> 0;

const hasOutputs = ({ spec: { outputs } }: Group): boolean => outputs !== undefined && outputs.length > 0;

/** Of what only another version let in, nothing is known. */
const outputsOf = (run: Run, group: Group, row: Row): readonly string[] => {
  try {
    return filesOf(run, group, row).outputs;
  } catch {
    return [];
  }
};

/** An attempt begins: its outputs are whatever it makes of them. */
export const noteBegun = ({ successes }: State, run: Run, group: Group, row: Row): void => {
  if (!hasOutputs(group)) return;
  for (const file of outputsOf(run, group, row)) successes.begin(file, ownerOf(run, row));
};

/** An attempt is over, however it ended. */
export const noteOver = ({ successes }: State, run: Run, group: Group, row: Row): void => {
  if (!hasOutputs(group)) return;
  for (const file of outputsOf(run, group, row)) successes.over(file, ownerOf(run, row));
};

const print = newLanes();

/** A task has succeeded. */
export const noteSuccess = ({ successes }: State, run: Run, group: Group, row: Row): void => {
  if (!hasOutputs(group)) return;
  const contents = group.contents?.[row - group.first] ?? 0;
  // what its inputs held was not read: it cannot be compared later
  if (group.spec.skip === "content" && contents === 0) return;
  fingerprintOf(run, group, row, print, contents);
  for (const file of outputsOf(run, group, row)) successes.succeed(file, ownerOf(run, row), print);
};

/** A task was skipped for its outputs. */
export const noteUse = ({ successes }: State, run: Run, group: Group, row: Row): void => {
  for (const file of outputsOf(run, group, row)) successes.use(file);
};
