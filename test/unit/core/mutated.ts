import fc from "fast-check";

/** Values in place of others: what a faulty or hostile sender may write. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    5,
    -1,
    0.5,
    9e15,
    1e300,
    4_000_000_000,
    2 ** 32,
    2 ** 53,
    Number.NaN,
    Infinity,
    "",
    "x",
    true,
    [],
    {},
    [null],
    [[0, 7]],
    new Uint8Array(3),
    12n,
  ),
  fc.integer(),
  fc.double(),
  fc.string({ maxLength: 5 }),
);

interface Change {
  readonly pick: number;
  readonly what: "replace" | "remove" | "repeat";
  readonly value: unknown;
}

export const change: fc.Arbitrary<Change> = fc.record({
  pick: fc.nat(),
  what: fc.constantFrom("replace", "replace", "replace", "remove", "repeat"),
  value: odd,
});

type Place = readonly [holder: Record<string, unknown>, key: string];

const placesIn = (value: unknown, into: Place[]): void => {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return;
  for (const key of Object.keys(value)) {
    into.push([value as Record<string, unknown>, key]);
    placesIn((value as Record<string, unknown>)[key], into);
  }
};

/** The same with some places changed, wherever they are. */
export const mutated = <T extends object>(original: T, changes: readonly Change[]): T => {
  const copy = structuredClone(original);
  for (const { pick, what, value } of changes) {
    const places: Place[] = [];
    placesIn(copy, places);
    const place = places[pick % Math.max(1, places.length)];
    if (place === undefined) continue;
    const [holder, key] = place;
    if (what === "replace") holder[key] = value;
    else if (what === "remove") delete holder[key];
    else if (Array.isArray(holder[key])) holder[key] = [...holder[key], ...holder[key]];
  }
  return copy;
};
