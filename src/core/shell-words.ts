/**
 * The words of a text, as a shell would split it at blanks: quotes keep together, a backslash takes the next character as
 * it is. Nothing is expanded. Undefined when a quote stays open.
 */
export const splitWords = (text: string): string[] | undefined => {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]!;
    if (quote === "'") {
      if (char === "'") quote = "";
      else word += char;
    } else if (char === "\\" && (quote === "" || /["\\$`]/.test(text[at + 1] ?? ""))) {
      at += 1;
      word = (word ?? "") + (text[at] ?? "\\");
    } else if (quote === '"') {
      if (char === '"') quote = "";
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (quote !== "") return undefined;
  if (word !== undefined) words.push(word);
  return words;
};
