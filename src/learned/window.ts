/** The last 100 values: their mean and quantiles. Its memory grows with what it holds: of a graph's templates most hold one. */
export const WINDOW = 100;

const FIRST_ROOM = 4;
const NONE = new Float32Array(0);

export class Window {
  /** From the second value on. */
  #values = NONE;
  #first = 0;
  #count = 0;
  #next = 0;
  #sum = 0;

  get count(): number {
    return this.#count;
  }

  /** Memory of its values. */
  get bytes(): number {
    return this.#values.byteLength;
  }

  /** -1 while it is empty. */
  get mean(): number {
    return this.#count === 0 ? -1 : this.#sum / this.#count;
  }

  /** The newest value; -1 while there is none. */
  get last(): number {
    return this.#count === 0 ? -1 : this.#at((this.#next + WINDOW - 1) % WINDOW);
  }

  /** Returns by how many bytes it grew. */
  add(value: number): number {
    if (this.#count === 0) {
      this.#first = Math.fround(value);
      this.#sum = this.#first;
      this.#count = this.#next = 1;
      return 0;
    }
    let grew = 0;
    if (this.#next >= this.#values.length) {
      const wider = new Float32Array(this.#next === 1 ? FIRST_ROOM : Math.min(WINDOW, this.#next * 5));
      wider.set(this.#values);
      if (this.#next === 1) wider[0] = this.#first;
      grew = wider.byteLength - this.#values.byteLength;
      this.#values = wider;
    }
    const gone = this.#count === WINDOW ? this.#values[this.#next]! : 0;
    this.#values[this.#next] = value;
    this.#sum += this.#values[this.#next]! - gone;
    if (this.#count < WINDOW) this.#count += 1;
    this.#next += 1;
    if (this.#next < WINDOW) return grew;
    this.#next = 0;
    // adding up again keeps rounding from piling up
    this.#sum = 0;
    for (const each of this.#values) this.#sum += each;
    return grew;
  }

  #at(place: number): number {
    return this.#values === NONE ? this.#first : this.#values[place]!;
  }

  /** Oldest first. */
  values(): Float32Array {
    const out = new Float32Array(this.#count);
    const first = this.#count === WINDOW ? this.#next : 0;
    for (let i = 0; i < this.#count; i += 1) out[i] = this.#at((first + i) % WINDOW);
    return out;
  }

  sorted(): Float32Array {
    return this.values().sort();
  }

  /** The value that a share `q` of them does not exceed, between neighbours on a line; -1 while it is empty. */
  quantile(q: number): number {
    return quantileOf(this.sorted(), q);
  }
}

export const quantileOf = (sorted: ArrayLike<number>, q: number): number => {
  if (sorted.length === 0) return -1;
  const at = Math.max(0, Math.min(1, q)) * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below]! + (at - below) * (sorted[above]! - sorted[below]!);
};
