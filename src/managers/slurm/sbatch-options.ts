import type { RefuseOption } from "../launch-dialect.ts";
import { CONTROLLED, SHORT, WITH_VALUE, WITHOUT_VALUE } from "./sbatch-table.ts";

/**
 * Users' options for sbatch, read as sbatch would read them: words of a `#SBATCH` line, then getopt_long with its
 * clusters of letters and abbreviated names. What comes out is rewritten, one unmistakable spelling per option, so
 * that no version of sbatch can read anything else from it.
 */
export interface UserOption {
  /** The long name, without dashes. */
  readonly name: string;
  readonly value?: string;
  /** As the user wrote it: `-G`, `--gpu`. */
  readonly spelled: string;
  /** Which entry of the list it is in. */
  readonly entry: number;
}

interface Word {
  readonly text: string;
  readonly entry: number;
}

/** Words of a `#SBATCH` line: backslash and both quotes work anywhere, `#` ends the line. */
const wordsOf = (line: string, entry: number, refuse: RefuseOption): Word[] => {
  const words: Word[] = [];
  let text: string | undefined;
  let quote = "";
  for (let i = 0; i < line.length; i++) {
    const char = line[i]!;
    if (char === "\\") {
      i += 1;
      text = (text ?? "") + (line[i] ?? "");
    } else if (quote !== "") {
      if (char === quote) quote = "";
      else text += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      text ??= "";
    } else if (char === "#") break;
    else if (/\s/.test(char)) {
      if (text !== undefined) words.push({ text, entry });
      text = undefined;
    } else text = (text ?? "") + char;
  }
  if (quote !== "") refuse({ entry, detail: `has an open ${quote}`, remedy: "Close the quote." });
  if (text !== undefined) words.push({ text, entry });
  return words;
};

const controlled = (name: string): string | undefined =>
  Object.hasOwn(CONTROLLED, name) ? CONTROLLED[name] : undefined;

/** The option that a long name means. An abbreviation that might mean a controlled one, in any version, counts as that. */
const resolve = (name: string): string => {
  if (WITH_VALUE.has(name) || WITHOUT_VALUE.has(name) || controlled(name) !== undefined) return name;
  const suspect = [...Object.keys(CONTROLLED), "gres"].find((full) => full.startsWith(name));
  if (suspect !== undefined) return suspect;
  const meant = [...WITH_VALUE, ...WITHOUT_VALUE].filter((full) => full.startsWith(name));
  return meant.length === 1 ? meant[0]! : name;
};

/** `gpu`, `gpu:a100:2`, `gres:gpu`, `gres/gpu=1` in a list. */
const namesGpu = (gres: string): boolean =>
  gres.split(",").some((item) => /^\s*(?:gres[:/])?gpu\s*(?:[:=/(]|$)/i.test(item));

/** Reads a list of entries as one command line. Refuses what Slipway controls, and what is not an option. */
export const readSbatchArgs = (args: readonly string[], refuse: RefuseOption): readonly UserOption[] => {
  const words = args.flatMap((line, entry) => wordsOf(line, entry, refuse));
  const options: UserOption[] = [];

  const take = (option: UserOption): void => {
    const { name, entry, spelled } = option;
    const remedy = controlled(name);
    if (remedy !== undefined) refuse({ entry, option: spelled, detail: "", remedy });
    else if (name === "gres" && namesGpu(option.value ?? "")) {
      refuse({ entry, option: spelled, detail: " for GPUs", remedy: "Use slots, slots_per_node and gpu_type." });
    } else options.push(option);
  };

  for (let i = 0; i < words.length; i++) {
    const { text, entry } = words[i]!;
    /** With the value after it, which it must have. */
    const takeNext = (name: string, spelled: string): void => {
      i += 1;
      const value = words[i]?.text;
      if (value === undefined) refuse({ entry, detail: `${spelled} needs a value`, remedy: "Add its value." });
      else take({ name, value, spelled, entry });
    };
    if (/^--[A-Za-z0-9]/.test(text)) {
      const equals = text.indexOf("=");
      const spelled = equals < 0 ? text : text.slice(0, equals);
      const name = resolve(spelled.slice(2));
      const next = words[i + 1]?.text;
      // another version's option may or may not take a value: a word that is not an option is taken for one
      const guessed = !WITHOUT_VALUE.has(name) && next !== undefined && !next.startsWith("-");
      if (!/^[A-Za-z0-9_-]+$/.test(name)) refuse({ entry, detail: "is not an option", remedy: "Write --name=value." });
      else if (equals >= 0) take({ name, value: text.slice(equals + 1), spelled, entry });
      else if (WITH_VALUE.has(name) || guessed) takeNext(name, spelled);
      else take({ name, spelled, entry });
    } else if (/^-[A-Za-z]/.test(text)) {
      for (let at = 1; at < text.length; at++) {
        const spelled = `-${text[at]}`;
        const name = Object.hasOwn(SHORT, text[at]!) ? SHORT[text[at]!]! : "";
        if (name === "") {
          refuse({ entry, detail: `${spelled} is not an option of sbatch`, remedy: "Write its long name." });
          break;
        }
        if (!WITH_VALUE.has(name)) {
          take({ name, spelled, entry });
          continue;
        }
        if (at + 1 < text.length) take({ name, value: text.slice(at + 1), spelled, entry });
        else takeNext(name, spelled);
        break;
      }
    } else refuse({ entry, detail: `'${text.slice(0, 60)}' is not an option`, remedy: "Write --name=value." });
  }
  return options;
};

/** A word of a `#SBATCH` line that means exactly this text. */
export const sbatchWord = (text: string): string => text.replaceAll(/[^\w=,.:/@%+-]/g, String.raw`\$&`);

/** `--name=value`, or `--name`, as a word of a `#SBATCH` line. */
export const sbatchOption = ({ name, value }: Pick<UserOption, "name" | "value">): string =>
  sbatchWord(value === undefined ? `--${name}` : `--${name}=${value}`);
