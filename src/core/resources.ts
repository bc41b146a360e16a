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

export const fits = (request: Resources, available: Resources): boolean => {
  for (const name in request) if (request[name]! > (available[name] ?? 0)) return false;
  return true;
};

/** A stable text for a set of resources: equal requests have equal keys. */
export const shapeKey = (request: Resources): string =>
  Object.keys(request)
    .filter((name) => request[name]! > 0)
    .toSorted()
    .map((name) => `${name}=${request[name]}`)
    .join(",");
