import { Window } from "./window.ts";

/** What is known about the tasks of one template: how long the last ones took, and the most memory each had. */
export class Template {
  readonly key: number;
  readonly took = new Window();
  /** Only of tasks whose peak somebody could tell. */
  peaks: Window | undefined;
  /** What followers were last told to expect; -1 before the first time. */
  announced = -1;

  constructor(key: number) {
    this.key = key;
  }

  get bytes(): number {
    return OVERHEAD + this.took.bytes + (this.peaks === undefined ? 0 : WINDOW_OVERHEAD + this.peaks.bytes);
  }
}

/** What the objects themselves cost, about. */
const OVERHEAD = 480;
const WINDOW_OVERHEAD = 240;
/** How much of what it may take is left when the oldest have gone. */
const KEPT = 7 / 8;

/** Templates by key, up to a number of bytes; the one that learned nothing for longest goes first. */
export class Templates {
  readonly limit: number;
  readonly #all = new Map<number, Template>();
  #newest: Template | undefined;
  #bytes = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get size(): number {
    return this.#all.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: number): Template | undefined {
    return this.#newest?.key === key ? this.#newest : this.#all.get(key);
  }

  /** `peak` is in bytes, -1 where nobody could tell. */
  add(key: number, tookMs: number, peak: number): Template {
    let template = this.get(key);
    if (template === undefined || template !== this.#newest) {
      if (template !== undefined) this.#all.delete(key);
      else {
        template = new Template(key);
        this.#bytes += template.bytes;
      }
      this.#all.set(key, template);
      this.#newest = template;
    }
    this.#bytes += template.took.add(tookMs);
    if (peak >= 0) this.addPeak(key, peak);
    if (this.#bytes > this.limit) this.#shrink();
    return template;
  }

  addPeak(key: number, peak: number): void {
    const template = this.get(key);
    if (template === undefined) return;
    if (template.peaks === undefined) {
      template.peaks = new Window();
      this.#bytes += WINDOW_OVERHEAD + template.peaks.bytes;
    }
    this.#bytes += template.peaks.add(peak);
  }

  oldestFirst(): Iterable<Template> {
    return this.#all.values();
  }

  /** Many at once: finding the oldest of a map takes time. The newest always stays. */
  #shrink(): void {
    for (const template of this.#all.values()) {
      if (this.#bytes <= this.limit * KEPT || template === this.#newest) return;
      this.#all.delete(template.key);
      this.#bytes -= template.bytes;
    }
  }
}
