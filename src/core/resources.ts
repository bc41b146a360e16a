/**
 * Amounts of resources. `mem` and `tmp` are counted in bytes; every other name (`cpus`, `gpus`, licences…) in
 * ten-thousandths, so that fractions add up exactly.
 */

export type Resources = Readonly<Record<string, number>>;

export const FRACTION = 10_000;

export const isByteResource = (name: string): boolean => name === "mem" || name === "tmp";

/** The amount a user wrote (2, 0.25, bytes) as exact integer units. */
export const toUnits = (name: string, value: number): number =>
  isByteResource(name) ? Math.ceil(value) : Math.round(value * FRACTION);

/** Integer units as the number a user reads. */
export const fromUnits = (name: string, units: number): number => (isByteResource(name) ? units : units / FRACTION);

/** The amount of a resource; user-defined names may be any word, even one that every object has (`constructor`). */
export const amountOf = (resources: Resources, name: string): number => {
  // what every object inherits is never a number
  const amount: unknown = resources[name];
  return typeof amount === "number" ? amount : 0;
};

const exactly = (_name: string, units: number): number => units;

/** A stable text for a set of resources: equal requests have equal keys. */
export const shapeKey = (request: Resources, amount: (name: string, units: number) => number = exactly): string => {
  const names: string[] = [];
  for (const name in request) if (request[name]! > 0) names.push(name);
  // most ask for one thing, and sorting takes kilobytes however little there is to sort
  if (names.length > 1) names.sort();
  let key = "";
  for (const name of names) key += `${key === "" ? "" : ","}${name}=${amount(name, request[name]!)}`;
  return key;
};

/** Steps of an amount between a power of two and the next: four significant bits. */
const STEPS = 8;

/** Bytes rounded up to four significant bits, by at most an eighth. */
export const roundUp = (bytes: number): number => {
  if (bytes <= 2 * STEPS) return bytes;
  const step = 2 ** Math.floor(Math.log2(bytes)) / STEPS;
  return Math.ceil(bytes / step) * step;
};

/** The least that is rounded up to the same amount. */
export const leastAlike = (bytes: number): number => {
  if (bytes <= 2 * STEPS) return bytes;
  const top = roundUp(bytes);
  const power = 2 ** Math.floor(Math.log2(top));
  // below a power of two steps are half as wide
  return top - power / (top === power ? 2 * STEPS : STEPS) + 1;
};

/** Requests with equal keys ask for the same, but for an eighth of memory and tmp. */
export const bucketKey = (request: Resources): string =>
  shapeKey(request, (name, units) => (isByteResource(name) ? roundUp(units) : units));
