import { type Resources, amountOf, bucketKey } from "./resources.ts";
import type { GroupSpec } from "./spec.ts";
import { type Bucket, type Shape, createBucket, createShape, hashIn, placeOf } from "./task-shapes.ts";

/**
 * What the rows of a group ask for where that comes from their items: of each row its bucket and its exact bytes, in columns. A
 * shape is made when somebody asks for it: a million of them would cost more to keep, and to walk through, than all else
 * about their tasks.
 */
export interface RowShapes {
  readonly length: number;
  at(index: number): Shape;
  bucketAt(index: number): Bucket;
  areAlike(index: number, other: number): boolean;
}

/** Rows of one bucket: the shape of its first one. Without bytes all others have the same. */
interface Kind {
  readonly shape: Shape;
  readonly mem: boolean;
  readonly tmp: boolean;
}

const LEAST = 64;

const kindOf = (shape: Shape): Kind => ({
  shape,
  mem: amountOf(shape.resources, "mem") > 0,
  tmp: amountOf(shape.resources, "tmp") > 0,
});

export class RowShapeColumns implements RowShapes {
  length = 0;
  private readonly spec: GroupSpec;
  /** The same for all rows, unless they were redirected. */
  private readonly place: string | undefined;
  private readonly kinds: Kind[] = [];
  private readonly byKey = new Map<string, number>();
  private kind = new Uint32Array(LEAST);
  private mem = new Float64Array(LEAST);
  /** Empty until a row asks for some. */
  private tmp = new Float64Array(0);

  constructor(spec: GroupSpec) {
    this.spec = spec;
    this.place = spec.redirect === undefined ? placeOf(spec, {}).place : undefined;
  }

  /** What the next row asks for, as its item says it. */
  push(asked: Resources): void {
    const { place, resources, alone } =
      this.place === undefined ? placeOf(this.spec, asked) : { place: this.place, resources: asked, alone: false };
    const key = place + bucketKey(resources);
    let number = this.byKey.get(key);
    if (number === undefined) {
      number = this.kinds.length;
      this.kinds.push(kindOf(createShape(this.spec, createBucket(key, place, resources), resources, alone, true)));
      this.byKey.set(key, number);
    }
    const { length } = this;
    if (length === this.kind.length) this.grow(length * 2);
    const tmp = amountOf(resources, "tmp");
    if (tmp > 0 && this.tmp.length === 0) this.tmp = new Float64Array(this.kind.length);
    this.kind[length] = number;
    this.mem[length] = amountOf(resources, "mem");
    if (tmp > 0) this.tmp[length] = tmp;
    this.length = length + 1;
  }

  at(index: number): Shape {
    const { shape, mem, tmp } = this.kinds[this.kind[index]!]!;
    if (!mem && !tmp) return shape;
    const { bucket, own, ranks, timeRequest, cluster, queue } = shape;
    const resources: Record<string, number> = { ...shape.resources };
    const hash = hashIn(bucket, mem ? this.mem[index]! : 0, tmp ? this.tmp[index]! : 0);
    if (mem) resources["mem"] = this.mem[index]!;
    if (tmp) resources["tmp"] = this.tmp[index]!;
    if (shape.alone === undefined && shape.job === undefined)
      return { hash, resources, bucket, own, ranks, timeRequest, cluster, queue };
    return { ...shape, hash, resources };
  }

  bucketAt(index: number): Bucket {
    return this.kinds[this.kind[index]!]!.shape.bucket;
  }

  areAlike(index: number, other: number): boolean {
    const { kind, mem, tmp } = this;
    return kind[index] === kind[other] && mem[index] === mem[other] && tmp[index] === tmp[other];
  }

  private grow(rows: number): void {
    const { kind, mem, tmp } = this;
    (this.kind = new Uint32Array(rows)).set(kind);
    (this.mem = new Float64Array(rows)).set(mem);
    if (tmp.length > 0) (this.tmp = new Float64Array(rows)).set(tmp);
  }
}

export const rowShapesOf = (spec: GroupSpec, asked: (index: number) => Resources, rows: number): RowShapes => {
  const shapes = new RowShapeColumns(spec);
  for (let index = 0; index < rows; index += 1) shapes.push(asked(index));
  return shapes;
};
