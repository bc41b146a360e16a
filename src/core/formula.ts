import { type Item, fieldOf } from "./item.ts";
import { quoted } from "./quantities.ts";

/**
 * Arithmetic between the braces of an amount: `item.n * 10`, `max(attempt, 2) * 4`. It is read once, before any value
 * is known, so a value can never change what is computed; nothing is ever evaluated as code.
 *
 *   expr    = product (("+" | "-") product)*
 *   product = factor (("*" | "/") factor)*
 *   factor  = "-" factor | NUMBER | name | "(" expr ")" | ("min" | "max") "(" expr ("," expr)* ")" | "ceil" "(" expr ")"
 *   name    = "attempt" | "item" | "item.key" | "item.key.sub"
 */
export type Expression =
  | { readonly op: "number"; readonly value: number }
  | { readonly op: "attempt" }
  | { readonly op: "item"; readonly path: readonly string[] }
  | { readonly op: Operation; readonly args: readonly Expression[] };

type Operation = "+" | "-" | "*" | "/" | "negate" | "min" | "max" | "ceil";

/** What an expression may refer to. */
export interface FormulaValues {
  readonly item: Item | undefined;
  readonly attempt: number;
}

export const LONGEST_FORMULA = 1000;
const DEEPEST = 40;

/** As in placeholders, a `-` inside a name belongs to it: `item.n-1` is the field `n-1`. */
const TOKEN = /\s*(?:(\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})(?![\w.])|([A-Za-z_]\w*(?:\.[\w-]*\w)*)|([-+*/(),])|(\S))/y;
const FUNCTIONS: ReadonlySet<string> = new Set(["min", "max", "ceil"]);
const KNOWN = "an amount can use item, item.key, attempt, numbers, + - * / ( ), min, max and ceil";

interface Token {
  readonly kind: "number" | "name" | "sign" | "end";
  readonly text: string;
}

const END: Token = { kind: "end", text: "" };

const tokensOf = (text: string): Token[] => {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (text.slice(TOKEN.lastIndex).trim() !== "") {
    const [, number, name, sign, odd] = TOKEN.exec(text)!;
    if (number !== undefined) tokens.push({ kind: "number", text: number });
    else if (name !== undefined) tokens.push({ kind: "name", text: name });
    else if (sign !== undefined) tokens.push({ kind: "sign", text: sign });
    else throw new RangeError(`${quoted(odd)} cannot stand in {${text}}: ${KNOWN}`);
  }
  return tokens;
};

/** Reads what stands between the braces. Throws a RangeError that says what is wrong with it. */
export const parseExpression = (text: string): Expression => {
  if (text.length > LONGEST_FORMULA) throw new RangeError(`a formula has at most ${LONGEST_FORMULA} characters`);
  const tokens = tokensOf(text);
  let at = 0;
  const next = (): Token => tokens[at] ?? END;
  const isSign = (...signs: readonly string[]): boolean => next().kind === "sign" && signs.includes(next().text);
  const fail = (wanted: string): never => {
    const found = next().kind === "end" ? "the end" : quoted(next().text);
    throw new RangeError(`{${text}} is not a formula: ${wanted} is missing before ${found}`);
  };
  const expect = (sign: string): void => {
    if (!isSign(sign)) fail(quoted(sign));
    at += 1;
  };

  const named = (name: string): Expression => {
    if (name === "attempt") return { op: "attempt" };
    const [root, ...path] = name.split(".");
    if (root === "item") return { op: "item", path };
    throw new RangeError(`{${text}}: ${quoted(name)} is not known; ${KNOWN}`);
  };

  const called = (name: string, depth: number): Expression => {
    expect("(");
    const args = [sum(depth)];
    while (name !== "ceil" && isSign(",")) {
      at += 1;
      args.push(sum(depth));
    }
    expect(")");
    return { op: name as Operation, args };
  };

  const factor = (depth: number): Expression => {
    if (depth > DEEPEST) throw new RangeError(`a formula is nested at most ${DEEPEST} levels deep`);
    const token = next();
    if (token.kind === "end" || (token.kind === "sign" && token.text !== "-" && token.text !== "(")) fail("a number");
    at += 1;
    if (token.kind === "number") return { op: "number", value: Number(token.text) };
    if (token.kind === "name") {
      return FUNCTIONS.has(token.text) && isSign("(") ? called(token.text, depth + 1) : named(token.text);
    }
    if (token.text === "-") return { op: "negate", args: [factor(depth + 1)] };
    const inner = sum(depth + 1);
    expect(")");
    return inner;
  };

  const chain = (signs: readonly string[], part: (depth: number) => Expression, depth: number): Expression => {
    let left = part(depth);
    while (isSign(...signs)) {
      const op = next().text as Operation;
      at += 1;
      left = { op, args: [left, part(depth)] };
    }
    return left;
  };
  const product = (depth: number): Expression => chain(["*", "/"], factor, depth);
  const sum = (depth: number): Expression => chain(["+", "-"], product, depth);

  const expression = sum(0);
  if (next().kind !== "end") fail("an operator");
  return expression;
};

const NUMERIC = /^-?(?:\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?$/;

const numberOf = (path: readonly string[], item: Item | undefined): number => {
  const name = ["item", ...path].join(".");
  if (item === undefined) throw new RangeError(`${name} has no value: this task has no items`);
  const value = path.length === 0 ? item.text : fieldOf(item, path);
  if (!NUMERIC.test(value)) throw new RangeError(`${name} is ${quoted(value)}, not a number`);
  if (!Number.isFinite(Number(value))) throw new RangeError(`${name} is ${quoted(value)}, which is too large`);
  return Number(value);
};

/** What floating point makes of 3 (3.0000000000000004) is 3. */
const ceil = (value: number): number => Math.ceil(Number(value.toPrecision(12)));

const compute = (op: Operation, values: readonly number[]): number => {
  const [a, b] = values as [number, number];
  switch (op) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      if (b === 0) throw new RangeError("divides by zero");
      return a / b;
    case "negate":
      return -a;
    case "min":
      return Math.min(...values);
    case "max":
      return Math.max(...values);
    case "ceil":
      return ceil(a);
  }
};

/** A finite number; throws a RangeError that names the value that is none, or what cannot be computed. */
export const evaluate = (expression: Expression, values: FormulaValues): number => {
  switch (expression.op) {
    case "number":
      return expression.value;
    case "attempt":
      return values.attempt;
    case "item":
      return numberOf(expression.path, values.item);
    default: {
      const result = compute(
        expression.op,
        expression.args.map((each) => evaluate(each, values)),
      );
      if (!Number.isFinite(result)) throw new RangeError("is too large to compute");
      return result;
    }
  }
};

/** The `item.key` paths of an expression (empty: the item itself), and whether it uses the attempt. */
export const referencesOf = (expression: Expression): { items: readonly (readonly string[])[]; attempt: boolean } => {
  if (expression.op === "attempt") return { items: [], attempt: true };
  if (expression.op === "item") return { items: [expression.path], attempt: false };
  if (expression.op === "number") return { items: [], attempt: false };
  const parts = expression.args.map(referencesOf);
  return { items: parts.flatMap(({ items }) => items), attempt: parts.some(({ attempt }) => attempt) };
};
