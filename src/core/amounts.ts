import {
  type Expression,
  evaluate,
  type FormulaValues,
  LONGEST_FORMULA,
  parseExpression,
  referencesOf,
} from "./formula.ts";
import { MAX_BYTES, parseResource, sizeUnit } from "./quantities.ts";
import { FRACTION, fromUnits, isByteResource } from "./resources.ts";
import { compileTrusted, expand, isPlaceholderName } from "./template.ts";

/**
 * One amount of a resource as it was written: a placeholder whose value is the whole text (`{item.mem}`, `{item}G`), or
 * a formula, the sum of `{expression}UNIT` and constants (`{item.n * 10}M + 2G`). It is read once; its value may depend
 * on the item and on the attempt.
 */
export interface Amount {
  readonly usesItem: boolean;
  readonly usesAttempt: boolean;
  /** The `{item.key}` paths, each once. */
  readonly fields: readonly (readonly string[])[];
  /** Integer units. Throws a RangeError that names the formula. */
  unitsFor(values: FormulaValues): number;
}

interface Term {
  /** A constant in bytes or whole amounts, or what stands between the braces. */
  readonly value: number | Expression;
  readonly unit: number;
}

/** Braces, and what stands between them. */
const BRACES = /\{([^{}]*)\}/g;

/** Whether a text is a formula. `{attempt}` is one: it has a value only when an attempt begins. */
export const isFormula = (text: string): boolean => {
  let plain = "";
  let from = 0;
  for (const match of text.matchAll(BRACES)) {
    const inside = match[1]!;
    if (inside === "attempt" || !isPlaceholderName(inside)) return true;
    plain += text.slice(from, match.index);
    from = match.index + match[0].length;
  }
  return `${plain}${text.slice(from)}`.includes("+");
};

const FORM = "a formula is a sum of {expression}UNIT and constants, such as {item.n * 10}M + 2G";

const termOf = (name: string, text: string): Term => {
  const [matched, inside, unitText = ""] = /^\{([^{}]*)\}\s*([A-Za-z]*)$/.exec(text) ?? [];
  if (matched === undefined) {
    if (/[{}]/.test(text) || text === "") throw new RangeError(FORM);
    return { value: fromUnits(name, parseResource(name, text)), unit: 1 };
  }
  const unit = isByteResource(name) ? sizeUnit(unitText) : unitText === "" ? 1 : undefined;
  if (unit === undefined)
    throw new RangeError(
      isByteResource(name)
        ? `'${unitText}' is not a unit; write K, M, G, T or P, or nothing for MB`
        : `${name} has no unit, so '${unitText}' cannot follow the braces`,
    );
  return { value: parseExpression(inside!), unit };
};

/** Between terms, but not between braces. */
const PLUS = /\+(?![^{}]*\})/;

const naming = <T>(text: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new RangeError(`${text}: ${error.message}`, { cause: error });
  }
};

/** The units of a sum, in bytes or whole amounts. */
const unitsOf = (name: string, total: number): number => {
  if (total < 0) throw new RangeError(`must not be negative, and comes to ${total}`);
  if (!isByteResource(name)) {
    const rounded = Math.round(total * FRACTION) / FRACTION;
    return parseResource(name, rounded === 0 ? total : rounded);
  }
  if (total > MAX_BYTES) throw new RangeError("comes to more than 1024 TiB");
  return Math.ceil(total);
};

/** Reads a formula. Throws a RangeError that names it and says what is wrong. */
export const compileFormula = (name: string, text: string): Amount => {
  const terms = naming(text.length > 60 ? `${text.slice(0, 57)}...` : text, () => {
    if (text.length > LONGEST_FORMULA) throw new RangeError(`a formula has at most ${LONGEST_FORMULA} characters`);
    return text.split(PLUS).map((term) => termOf(name, term.trim()));
  });
  const references = terms.map(({ value }) =>
    typeof value === "number" ? { items: [], attempt: false } : referencesOf(value),
  );
  const items = references.flatMap((each) => each.items);
  return {
    usesItem: items.length > 0,
    usesAttempt: references.some(({ attempt }) => attempt),
    fields: [...new Map(items.filter((path) => path.length > 0).map((path) => [path.join("."), path])).values()],
    unitsFor: (values) =>
      naming(text, () => {
        let total = 0;
        for (const { value, unit } of terms)
          total += unit * (typeof value === "number" ? value : evaluate(value, values));
        return unitsOf(name, total);
      }),
  };
};

/** How many results of a placeholder are kept: few texts make most amounts. */
const MOST_KEPT = 10_000;

/** An amount that depends on the item or the attempt, of either kind. */
export const compileAmount = (name: string, text: string): Amount => {
  if (isFormula(text)) return compileFormula(name, text);
  const template = compileTrusted(text);
  const known = new Map<string, number>();
  return {
    usesItem: template.uses.has("item"),
    usesAttempt: false,
    fields: template.fields,
    unitsFor: ({ item }) => {
      const written = expand(template, { run: "", task: "", name: "", attempt: "", cwd: "", item });
      const before = known.get(written);
      if (before !== undefined) return before;
      const units = parseResource(name, written);
      if (known.size < MOST_KEPT) known.set(written, units);
      return units;
    },
  };
};
