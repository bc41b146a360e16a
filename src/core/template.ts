import { fieldOf, type Item } from "./item.ts";
import { quoteFor, type Quoting } from "./shell-quoting.ts";
import { shellScanner } from "./shell-scanner.ts";

/**
 * Placeholders in commands, paths and environment values: `{run} {task} {name} {attempt} {item} {item.key} {cwd}`.
 *
 *   {{ … }}          literal braces: `{{item}}` gives `{item}`
 *   ${…}             left alone: it belongs to the shell
 *   {print $1} {a,b} left alone: what is between the braces is not a name
 *   {word}           a placeholder; an unknown word is a problem, never passed on silently
 *
 * In a string command a value is quoted for the place where it stands (see shell-scanner.ts), unless the whole command
 * is that one placeholder: then the value is the command.
 */
export const PLACEHOLDERS = ["run", "task", "name", "attempt", "item", "cwd"] as const;

/** These are only ever digits: they may stand where no other value may. */
const NUMBERS: ReadonlySet<string> = new Set(["run", "task", "attempt"]);

export type Placeholder = (typeof PLACEHOLDERS)[number];

interface Slot {
  readonly name: Placeholder;
  /** Keys below `{item}`; empty for the value itself. */
  readonly path: readonly string[];
  readonly quoting: Quoting;
}

export interface Template {
  readonly text: string;
  readonly parts: readonly (string | Slot)[];
  readonly uses: ReadonlySet<Placeholder>;
  /** The `{item.key}` paths, each once. */
  readonly fields: readonly (readonly string[])[];
  /** The whole result when there is no placeholder; expand returns this very string. */
  readonly constant: string | undefined;
  /** Why it cannot be expanded: only an older version accepted it. */
  readonly refused?: string;
}

export interface TemplateProblem {
  /** `unknown`: no such placeholder. `malformed`: one written or placed wrongly; `detail` says how. */
  readonly problem: "unknown" | "malformed";
  readonly name: string;
  readonly detail: string;
}

export interface TemplateContext {
  readonly run: string | number;
  readonly task: string | number;
  readonly name: string;
  readonly attempt: string | number;
  readonly cwd: string;
  readonly item?: Item | undefined;
}

/** The text between braces, if it could be meant as a placeholder. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*$/;
const LONGEST_NAME = 200;

/** Whether a text between braces is read as a placeholder's name. */
export const isPlaceholderName = (inside: string): boolean => inside.length <= LONGEST_NAME && NAME.test(inside);

const isKnown = (name: string): name is Placeholder => (PLACEHOLDERS as readonly string[]).includes(name);

const malformed = (name: string, detail: string): TemplateProblem => ({ problem: "malformed", name, detail });

/** Between the braces: a name, a problem, or undefined for text that is not a placeholder. */
const readName = (inside: string): { root: Placeholder; path: string[] } | TemplateProblem | undefined => {
  if (!NAME.test(inside)) {
    return /^item[.[]/.test(inside)
      ? malformed(inside, `{${inside}} is not a placeholder: fields are written {item.key} or {item.key.sub}`)
      : undefined;
  }
  const [root, ...path] = inside.split(".");
  if (!isKnown(root!)) return { problem: "unknown", name: inside, detail: `unknown placeholder {${inside}}` };
  if (path.length > 0 && root !== "item") return malformed(inside, `{${root}} has no fields; only {item.key} has`);
  return { root: root as Placeholder, path };
};

const NO_USES: ReadonlySet<Placeholder> = new Set();
const NO_FIELDS: Template["fields"] = [];

/** Reads a text once; the result expands without looking at it again. */
export const compile = (text: string, options: { readonly shell?: boolean } = {}): Template | TemplateProblem => {
  // most texts have no braces at all
  if (options.shell !== true && !text.includes("{") && !text.includes("}"))
    return { text, parts: text === "" ? [] : [text], uses: NO_USES, fields: NO_FIELDS, constant: text };
  const parts: (string | Slot)[] = [];
  const uses = new Set<Placeholder>();
  const fields = new Map<string, readonly string[]>();
  const shell = options.shell === true ? shellScanner() : undefined;
  /** Open braces: "${", "{{" or one that is left alone. Each "}" closes the last, so "}}" only ends a "{{". */
  const open: ("dollar" | "escape" | "plain")[] = [];
  let literal = "";
  let from = 0;

  const push = (part: string): void => {
    literal += part;
  };
  const flush = (): void => {
    if (literal === "") return;
    parts.push(literal);
    shell?.feed(literal);
    literal = "";
  };

  for (let at = 0; at < text.length;) {
    const char = text.charCodeAt(at);
    if (char !== 123 && char !== 125) {
      at++;
      continue;
    }
    push(text.slice(from, at));
    const doubled = text.charCodeAt(at + 1) === char;
    let taken = 1;
    if (char === 125) {
      const last = open.at(-1);
      if (last === "escape" && doubled) taken = 2;
      if (last !== "escape" || doubled) open.pop();
      push("}");
    } else if (at > 0 && text[at - 1] === "$") {
      open.push("dollar");
      push("{");
    } else if (doubled) {
      open.push("escape");
      taken = 2;
      push("{");
    } else {
      const end = text.indexOf("}", at);
      const escaped = shell !== undefined && text[at - 1] === "\\";
      const name = end < 0 || end - at > LONGEST_NAME || escaped ? undefined : readName(text.slice(at + 1, end));
      if (name === undefined) {
        open.push("plain");
        push("{");
      } else if ("problem" in name) return name;
      else {
        flush();
        const quoting = shell?.placeholder(NUMBERS.has(name.root)) ?? "none";
        if (typeof quoting === "object")
          return malformed(name.root, `{${name.root}} cannot be used here: ${quoting.refused}`);
        parts.push({ name: name.root, path: name.path, quoting });
        uses.add(name.root);
        if (name.path.length > 0) fields.set(name.path.join("."), name.path);
        taken = end - at + 1;
      }
    }
    at += taken;
    from = at;
  }
  push(text.slice(from));
  flush();
  const problem = shell?.problem();
  if (problem !== undefined) return malformed("item", problem);
  const [slot, ...more] = parts.filter((part) => typeof part !== "string" || part.trim() !== "");
  if (typeof slot === "object" && more.length === 0) parts[parts.indexOf(slot)] = { ...slot, quoting: "none" };
  const constant = uses.size === 0 ? parts.join("") : undefined;
  return { text, parts, uses, fields: [...fields.values()], constant };
};

/** Compiles a text checked before, such as one from a RunSpec; what only an older version accepted fails to expand. */
export const compileTrusted = (text: string, options: { readonly shell?: boolean } = {}): Template => {
  const template = compile(text, options);
  return "problem" in template
    ? { text, parts: [], uses: new Set(), fields: [], constant: undefined, refused: template.detail }
    : template;
};

const valueOf = (slot: Slot, context: TemplateContext): string => {
  if (slot.name !== "item") return String(context[slot.name]);
  const { item } = context;
  if (item === undefined) throw new RangeError("{item} has no value: this task has no items");
  return slot.path.length === 0 ? item.text : fieldOf(item, slot.path);
};

/** The text for one task. Throws a RangeError when the item lacks a field or a value cannot go where it is needed. */
export const expand = (template: Template, context: TemplateContext): string => {
  if (template.constant !== undefined) return template.constant;
  if (template.refused !== undefined) throw new RangeError(template.refused);
  let text = "";
  for (const part of template.parts) {
    text += typeof part === "string" ? part : quoteFor(valueOf(part, context), part.quoting);
  }
  return text;
};
