/** A hash of 64 bits in two lanes, fed piece by piece. It keeps names apart; it keeps no secret. */
export interface Lanes {
  lo: number;
  hi: number;
}

export const newLanes = (): Lanes => ({ lo: 0x1e3779b9, hi: 0x05ebca6b });

/** Mixes in a text and its length, so that ("ab", "c") and ("a", "bc") differ. */
export const mixText = (lanes: Lanes, text: string): void => {
  let { lo, hi } = lanes;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    lo = Math.imul(lo ^ unit, 0x9e3779b1);
    hi = Math.imul(hi ^ unit, 0x5f356495);
    lo ^= lo >>> 15;
    hi ^= hi >>> 13;
  }
  lanes.lo = Math.imul(lo ^ text.length, 0x85ebca77);
  lanes.hi = Math.imul(hi ^ text.length, 0xc2b2ae3d);
};

const spread = (value: number): number => {
  let v = value;
  v = Math.imul(v ^ (v >>> 16), 0x7feb352d);
  v = Math.imul(v ^ (v >>> 15), 0x846ca68b);
  return v ^ (v >>> 16);
};

/** What was mixed so far, as two signed numbers of 32 bits, which V8 keeps without allocating; mixing may go on from `from`. */
export const finish = (from: Lanes, into: Lanes): void => {
  const { lo, hi } = from;
  into.lo = spread(lo ^ Math.imul(hi, 0x27d4eb2f));
  into.hi = spread(hi ^ Math.imul(into.lo, 0x165667b1));
};

/** One number of 53 bits. */
export const numberOf = ({ lo, hi }: Lanes): number => (hi & 0x1f_ffff) * 0x1_0000_0000 + (lo >>> 0);
