import { ENTRY_BYTES } from "./identities.ts";
import type { Learned } from "./learned.ts";
import { WINDOW, type Window } from "./window.ts";

/**
 * What was learned as bytes, little-endian, oldest first:
 *
 *   saved:f64 identities:u32 templates:u32
 *   identity = lo:i32 hi:i32 tookMs:f32 peak:f32 at:f64
 *   template = key:f64 took:u8 peaks:u8 value:f32 …
 */
const HEAD = 16;
const TEMPLATE = 10;

const valuesOf = (window: Window | undefined): Float32Array => window?.values() ?? new Float32Array(0);

/** `saved` is the server's time: what ended later is not in it. */
export const encodeLearned = ({ identities, templates }: Learned, saved: number): Uint8Array => {
  let length = HEAD + identities.size * ENTRY_BYTES;
  for (const { took, peaks } of templates.oldestFirst()) length += TEMPLATE + 4 * (took.count + (peaks?.count ?? 0));
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setFloat64(0, saved, true);
  view.setUint32(8, identities.size, true);
  view.setUint32(12, templates.size, true);
  identities.write(view, HEAD);
  let at = HEAD + identities.size * ENTRY_BYTES;
  for (const { key, took, peaks } of templates.oldestFirst()) {
    const lists = [valuesOf(took), valuesOf(peaks)] as const;
    view.setFloat64(at, key, true);
    view.setUint8(at + 8, lists[0].length);
    view.setUint8(at + 9, lists[1].length);
    at += TEMPLATE;
    for (const list of lists)
      for (const value of list) {
        view.setFloat32(at, value, true);
        at += 4;
      }
  }
  return bytes;
};

const damaged = (what: string): RangeError => new RangeError(`${what} in what was learned cannot be right`);

const amount = (value: number, what: string, least = 0): number => {
  if (!(value >= least) || value === Infinity) throw damaged(what);
  return value;
};

/** Puts them into an empty store; returns when they were saved. Throws a RangeError for bytes that cannot be right. */
export const decodeLearned = (bytes: Uint8Array, { identities, templates }: Learned): number => {
  if (bytes.length < HEAD) throw damaged("the length");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const saved = amount(view.getFloat64(0, true), "the time");
  const counts = [view.getUint32(8, true), view.getUint32(12, true)] as const;
  if (HEAD + counts[0] * ENTRY_BYTES + counts[1] * TEMPLATE > bytes.length) throw damaged("a count");
  let at = HEAD;
  for (let i = 0; i < counts[0]; i += 1, at += ENTRY_BYTES)
    identities.set(
      view.getInt32(at, true),
      view.getInt32(at + 4, true),
      amount(view.getFloat32(at + 8, true), "a duration"),
      amount(view.getFloat32(at + 12, true), "a peak", -1),
      amount(view.getFloat64(at + 16, true), "a time"),
    );
  for (let i = 0; i < counts[1]; i += 1) {
    if (at + TEMPLATE > bytes.length) throw damaged("a template");
    const key = amount(view.getFloat64(at, true), "a template");
    const [took, peaks] = [view.getUint8(at + 8), view.getUint8(at + 9)];
    at += TEMPLATE;
    if (took < 1 || took > WINDOW || peaks > WINDOW || at + 4 * (took + peaks) > bytes.length)
      throw damaged("a template");
    for (let n = 0; n < took; n += 1) templates.add(key, amount(view.getFloat32(at + 4 * n, true), "a duration"), -1);
    at += 4 * took;
    for (let n = 0; n < peaks; n += 1) templates.addPeak(key, amount(view.getFloat32(at + 4 * n, true), "a peak"));
    at += 4 * peaks;
  }
  if (at !== bytes.length) throw damaged("the length");
  return saved;
};
