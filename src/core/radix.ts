/**
 * Sorts places by whole numbers, in turns: it yields each time it has moved many, so that a million take nobody's time.
 * Equal keys keep their order.
 */

const BITS = 11;
const BUCKETS = 1 << BITS;
/** Moved in one turn: a few milliseconds. */
const PER_TURN = 200_000;

/** The places `0 … keys.length - 1` in the order of their keys. */
export function* sortedPlaces(keys: Uint32Array): Generator<undefined, Uint32Array> {
  const count = keys.length;
  let from = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) from[i] = i;
  let to = new Uint32Array(count);
  const most = yield* mostOf(keys);
  for (let shift = 0; shift < 32 && (shift === 0 || most >>> shift > 0); shift += BITS) {
    const ends = new Uint32Array(BUCKETS + 1);
    for (let i = 0; i < count; i += 1) {
      if (i % PER_TURN === PER_TURN - 1) yield;
      ends[((keys[i]! >>> shift) & (BUCKETS - 1)) + 1]! += 1;
    }
    for (let bucket = 1; bucket <= BUCKETS; bucket += 1) ends[bucket]! += ends[bucket - 1]!;
    for (let i = 0; i < count; i += 1) {
      if (i % PER_TURN === PER_TURN - 1) yield;
      const place = from[i]!;
      const bucket = (keys[place]! >>> shift) & (BUCKETS - 1);
      to[ends[bucket]!] = place;
      ends[bucket]! += 1;
    }
    [from, to] = [to, from];
  }
  return from;
}

function* mostOf(keys: Uint32Array): Generator<undefined, number> {
  let most = 0;
  for (let i = 0; i < keys.length; i += 1) {
    if (i % PER_TURN === PER_TURN - 1) yield;
    if (keys[i]! > most) most = keys[i]!;
  }
  return most;
}
