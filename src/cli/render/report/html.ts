/**
 * HTML of which every part that comes from outside is text, never markup: a template escapes what is put into it, unless
 * that was made here as well.
 */
export interface Html {
  readonly html: string;
}

const MEANING: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Control characters are not shown, and neither are those that turn the direction of what follows. */
// eslint-disable-next-line no-control-regex -- control characters are what this is about
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export const escaped = (text: string): string =>
  text.replaceAll(UNSEEN, "\ufffd").replaceAll(/[&<>"']/g, (each) => MEANING[each]!);

type Part = string | number | Html | readonly Html[] | null;

const textOf = (part: Part): string => {
  if (part === null) return "";
  if (typeof part === "string" || typeof part === "number") return escaped(String(part));
  return "html" in part ? part.html : part.map(({ html }) => html).join("");
};

/** Attributes must stand in double quotes: that is what is escaped for. How a template is laid out is not kept. */
export const html = (texts: TemplateStringsArray, ...parts: readonly Part[]): Html => ({
  html: texts
    .map((text) => text.replaceAll(/\s*\n\s*/g, " "))
    .reduce((all, text, i) => `${all}${textOf(parts[i - 1] ?? null)}${text}`),
});
