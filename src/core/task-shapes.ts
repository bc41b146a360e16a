import { mapHere } from "./redirect.ts";
import { type Resources, amountOf, bucketKey, isByteResource, leastAlike, shapeKey } from "./resources.ts";
import type { GroupSpec, JobSpec, RankSpec } from "./spec.ts";

/** What placement needs to know about tasks, and which of them wait together. */

/** Shapes that wait together: alike but for an eighth of memory and tmp. Only for grouping: amounts stay exact. */
export interface Bucket {
  readonly key: string;
  /** A number made from the key: equal for equal keys, and rarely for others. */
  readonly hash: number;
  /** What comes before the amounts in the keys of its shapes. */
  readonly place: string;
  /** No shape in it asks for less. */
  readonly least: Resources;
}

/**
 * What placement needs to know about a task. Compare shapes with `sameShape`: those that come from items are made when they
 * are needed, and there may be a million of them.
 */
export interface Shape {
  /** Equal for equal shapes, and rarely for others. */
  readonly hash: number;
  readonly bucket: Bucket;
  readonly resources: Resources;
  readonly timeRequest: number;
  readonly cluster: string | undefined;
  readonly queue: string | undefined;
  /** With ranks, `resources` are for one rank. */
  readonly ranks: RankSpec | undefined;
  /** It comes from an item, so that each task of a bucket may have its own, and it is for one process beside others. */
  readonly own: boolean;
  /** Nothing else may run on its machine beside it. */
  readonly alone?: true;
  /** It is a batch job of its own, and asks this of its manager beside its resources. */
  readonly job?: JobSpec;
}

const rankKey = (ranks: RankSpec | undefined): string =>
  ranks === undefined ? "" : `${ranks.count}x${ranks.nodes ?? ""}/`;

/** Jobs that ask for the same of their manager wait together: their walltime comes from the time limit. */
const jobKey = ({ job, timeLimit }: GroupSpec): string =>
  job === undefined
    ? ""
    : `job ${timeLimit ?? ""} ${JSON.stringify(Object.entries(job.keys).toSorted(([a], [b]) => (a < b ? -1 : 1)))}/`;

const leastOf = (resources: Resources): Resources => {
  const least: Record<string, number> = {};
  for (const name in resources) least[name] = isByteResource(name) ? leastAlike(resources[name]!) : resources[name]!;
  return least;
};

const textHash = (text: string): number => {
  let hash = 0;
  for (let i = 0; i < text.length; i += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash;
};

/** Spreads what tells amounts apart over all bits: most are multiples of a power of two. */
const mixed = (hash: number, bytes: number): number => {
  const low = bytes | 0;
  const bits = low ^ (low >>> 16) ^ (bytes / 2 ** 32);
  return (Math.imul(hash, 31) + Math.imul(bits, 0x85ebca6b)) | 0;
};

/** Of a shape in this bucket: the bucket tells all but the exact bytes. */
export const hashIn = ({ hash }: Bucket, mem: number, tmp: number): number => mixed(mixed(hash, mem), tmp);

/** A text that is equal for equal shapes. */
export const keyOf = ({ bucket, resources }: Shape): string => bucket.place + shapeKey(resources);

export const sameBucket = (a: Bucket, b: Bucket): boolean => a === b || (a.hash === b.hash && a.key === b.key);

/** Whether two shapes have equal keys. */
export const sameShape = (a: Shape, b: Shape): boolean =>
  a === b ||
  (a.hash === b.hash &&
    sameBucket(a.bucket, b.bucket) &&
    amountOf(a.resources, "mem") === amountOf(b.resources, "mem") &&
    amountOf(a.resources, "tmp") === amountOf(b.resources, "tmp"));

/** Shapes of one run: equal ones are one object, and so are equal buckets. */
export interface ShapeSet {
  /** A shape from a group's spec and the resources of one task; `alone` whatever it asks for, as its first attempt was. */
  of(spec: GroupSpec, resources: Resources, alone?: boolean): Shape;
}

/** How tasks of a group are placed that ask for this, and the beginning of their keys. */
export const placeOf = (
  spec: GroupSpec,
  asked: Resources,
  wasAlone = false,
): { readonly place: string; readonly resources: Resources; readonly alone: boolean } => {
  const { cluster, queue, timeRequest = 0, ranks, redirect } = spec;
  const mapped = redirect === undefined ? undefined : mapHere(redirect.here, asked, ranks);
  const alone = wasAlone || mapped?.alone === true;
  const place = `${cluster ?? ""}/${queue ?? ""}/${timeRequest}/${alone ? "alone/" : ""}${rankKey(ranks)}${jobKey(spec)}`;
  return { place, resources: mapped?.resources ?? asked, alone };
};

export const createBucket = (key: string, place: string, resources: Resources): Bucket => ({
  key,
  hash: textHash(key),
  place,
  least: leastOf(resources),
});

export const createShape = (
  { cluster, queue, timeRequest = 0, ranks, job }: GroupSpec,
  bucket: Bucket,
  resources: Resources,
  alone: boolean,
  fromItem: boolean,
): Shape => {
  // what placing reads comes first
  const hash = hashIn(bucket, amountOf(resources, "mem"), amountOf(resources, "tmp"));
  const shape: Shape = {
    hash,
    resources,
    bucket,
    own: fromItem && !alone && ranks === undefined,
    ranks,
    timeRequest,
    cluster,
    queue,
  };
  if (!alone && job === undefined) return shape;
  return { ...shape, ...(alone ? { alone } : {}), ...(job === undefined ? {} : { job }) };
};

export const createShapeSet = (): ShapeSet => {
  const shapes = new Map<string, Shape>();
  const buckets = new Map<string, Bucket>();

  const bucketOf = (place: string, resources: Resources): Bucket => {
    const key = place + bucketKey(resources);
    let bucket = buckets.get(key);
    if (bucket === undefined) buckets.set(key, (bucket = createBucket(key, place, resources)));
    return bucket;
  };

  return {
    of: (spec, asked, wasAlone) => {
      const { place, resources, alone } = placeOf(spec, asked, wasAlone);
      const key = place + shapeKey(resources);
      let shape = shapes.get(key);
      if (shape === undefined)
        shapes.set(key, (shape = createShape(spec, bucketOf(place, resources), resources, alone, false)));
      return shape;
    },
  };
};

/** A shape that is shared with no other. */
export const shapeOf = (spec: GroupSpec, resources: Resources): Shape => createShapeSet().of(spec, resources);
