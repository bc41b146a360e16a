/**
 * Numbers in the text format of Prometheus (version 0.0.4). Counting costs an addition; everything else happens when
 * somebody asks. The number of series is bounded: what comes beyond is counted as `other`.
 */

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** One line for each series. */
  lines(): Iterable<string>;
}

export interface Counter extends Family {
  /** `values` are in the order of the label names. */
  add(by: number, ...values: readonly string[]): void;
}

export interface Histogram extends Family {
  /** `times`: how often the same was seen. */
  observe(value: number, times?: number, ...values: readonly string[]): void;
}

/** Series of a family by its labels; one more, and the new one is counted as `other`. */
export const MOST_SERIES = 50;
const OTHER = "other";
const MOST_LABEL = 200;

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };

const quoted = (value: string): string =>
  `"${value.slice(0, MOST_LABEL).replace(/[\\"\n]/g, (found) => ESCAPES[found]!)}"`;

const labelText = (labels: Labels): string => {
  const parts = Object.entries(labels).map(([name, value]) => `${name}=${quoted(value)}`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
};

const numberText = (value: number): string =>
  value === Infinity ? "+Inf" : value === -Infinity ? "-Inf" : Number.isNaN(value) ? "NaN" : String(value);

/** Finds what belongs to some values of the labels, or to `other` where there are too many. */
const createSeries = <T>(names: readonly string[], make: () => T) => {
  const found = new Map<string, T>();
  const other = names.map(() => OTHER);
  const keyOf = (values: readonly string[]): string =>
    labelText(Object.fromEntries(names.map((name, i) => [name, values[i] ?? ""])));
  const at = (key: string): T => {
    const made = make();
    found.set(key, made);
    return made;
  };
  const single = names.length === 0 ? at("") : undefined;
  return {
    of: (values: readonly string[]): T => {
      if (single !== undefined) return single;
      const key = keyOf(values);
      return found.get(key) ?? (found.size < MOST_SERIES ? at(key) : (found.get(keyOf(other)) ?? at(keyOf(other))));
    },
    /** By the text of their labels. */
    all: (): Iterable<readonly [labels: string, of: T]> => found,
  };
};

export const createCounter = (name: string, help: string, names: readonly string[] = []): Counter => {
  const series = createSeries(names, () => ({ value: 0 }));
  return {
    name,
    help,
    type: "counter",
    add: (by, ...values) => {
      series.of(values).value += by;
    },
    *lines() {
      for (const [labels, { value }] of series.all()) yield `${name}${labels} ${numberText(value)}`;
    },
  };
};

/** The same labels and one more. */
const withLabel = (labels: string, name: string, value: string): string =>
  labels === "" ? `{${name}="${value}"}` : `${labels.slice(0, -1)},${name}="${value}"}`;

/** `bounds` are upper ones, in ascending order; the last, +Inf, is added. */
export const createHistogram = (
  name: string,
  help: string,
  bounds: readonly number[],
  names: readonly string[] = [],
): Histogram => {
  const series = createSeries(names, () => ({ counts: new Float64Array(bounds.length + 1), sum: 0 }));
  return {
    name,
    help,
    type: "histogram",
    observe: (value, times = 1, ...values) => {
      const at = series.of(values);
      let i = 0;
      while (i < bounds.length && value > bounds[i]!) i += 1;
      at.counts[i]! += times;
      at.sum += value * times;
    },
    *lines() {
      for (const [labels, { counts, sum }] of series.all()) {
        let count = 0;
        for (const [i, inside] of counts.entries()) {
          count += inside;
          yield `${name}_bucket${withLabel(labels, "le", numberText(bounds[i] ?? Infinity))} ${count}`;
        }
        yield `${name}_sum${labels} ${numberText(sum)}`;
        yield `${name}_count${labels} ${count}`;
      }
    },
  };
};

/** Read when somebody asks. Samples with the same labels are one. */
export const createGauge = (
  name: string,
  help: string,
  read: () => Iterable<Sample>,
  type: "gauge" | "counter" = "gauge",
): Family => ({
  name,
  help,
  type,
  *lines() {
    const sums = new Map<string, number>();
    for (const { labels = {}, value } of read()) {
      const key = labelText(labels);
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
    for (const [labels, value] of sums) yield `${name}${labels} ${numberText(value)}`;
  },
});

/** The largest of them under their own name, `most` at most; the others together as `other`. */
export const largestOf = (counts: ReadonlyMap<string, number>, label: string, most = MOST_SERIES): Sample[] => {
  const sorted = [...counts].toSorted(([, a], [, b]) => b - a);
  const rest = sorted.slice(most).reduce((sum, [, value]) => sum + value, 0);
  const samples = sorted.slice(0, most).map(([name, value]) => ({ labels: { [label]: name }, value }));
  return rest === 0 ? samples : [...samples, { labels: { [label]: OTHER }, value: rest }];
};

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

const escapedHelp = (help: string): string => help.replace(/[\\\n]/g, (found) => ESCAPES[found]!);

export const render = (families: Iterable<Family>): string => {
  let text = "";
  for (const family of families) {
    const lines = [...family.lines()];
    if (lines.length === 0) continue;
    text += `# HELP ${family.name} ${escapedHelp(family.help)}\n# TYPE ${family.name} ${family.type}\n${lines.join("\n")}\n`;
  }
  return text;
};
