import { timingSafeEqual } from "node:crypto";

/** Whether a secret is the right one, taking a time that reveals nothing about it. */
export const sameSecret = (given: string, expected: string): boolean => {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
};

/** The key as msgpack writes it: short text, its length in the first byte. */
const KEY = Buffer.from([0xa0 | "token".length, ...Buffer.from("token")]);

/**
 * Whether the beginning of a packed hello holds the right token. The token is among the first keys: so the rest, which
 * may be long, is read only from those who have it.
 */
export const showsToken = (head: Buffer, expected: string): boolean => {
  const at = head.indexOf(KEY) + KEY.length;
  if (at < KEY.length || at + 2 > head.length) return false;
  const kind = head[at]!;
  // short text has its length in the first byte, text up to 255 bytes in the second
  const [start, length] = kind >> 5 === 5 ? [at + 1, kind & 31] : kind === 0xd9 ? [at + 2, head[at + 1]!] : [at, 0];
  return sameSecret(head.toString("utf8", start, start + length), expected);
};
