import { timingSafeEqual } from "node:crypto";

/** Whether a secret is the right one, in a time that tells nothing about it. */
export const sameSecret = (given: string, expected: string): boolean => {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
};
