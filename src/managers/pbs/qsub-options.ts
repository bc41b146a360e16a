import type { RefuseOption } from "../launch-dialect.ts";

/**
 * Users' options for qsub, read as qsub would read them, and rewritten. A `-l select=` keeps its resources except
 * those that Slipway counts itself.
 */
export interface PbsOptions {
  /** Letter and value of what is passed on. */
  readonly options: readonly { readonly letter: string; readonly value: string; readonly entry: number }[];
  /** Resources of each chunk, in the order in which they were named. */
  readonly chunk: ReadonlyMap<string, string>;
  /** Resources of the whole job: `walltime` and whatever is not one of a chunk. */
  readonly job: ReadonlyMap<string, string>;
  /** How the chunks are laid over nodes: `scatter:excl`. */
  readonly place?: string;
  /** What was left out, for people. */
  readonly ignored: readonly string[];
}

/** May be passed on; Slipway controls everything else, or it would turn the job into something else. */
const ALLOWED = new Set(["a", "A", "f", "l", "m", "M", "p"]);
const REMEDIES: Readonly<Record<string, string>> = {
  N: "Use name.",
  q: "Use resource_pool.",
  P: "Use project, workspace or labels, as job_project_source of the cluster says.",
  e: "`slipway jobs logs` shows what the job prints.",
  o: "`slipway jobs logs` shows what the job prints.",
  v: "Use env.",
  V: "Slipway always sets it.",
  r: "Slipway always sets it.",
  J: "A launch is one job; submit several.",
  u: "Use user.",
};
/** Without a value. */
const FLAGS = new Set(["f", "G", "h", "I", "V", "X", "z"]);

/** Resources that PBS counts per chunk; asked for the whole job, they cannot be combined with a select. */
const OF_CHUNKS = new Set([
  "ncpus",
  "ngpus",
  "nmics",
  "naccelerators",
  "accelerator",
  "accelerator_model",
  "accelerator_memory",
  "mem",
  "vmem",
  "mpiprocs",
  "ompthreads",
  "host",
  "vnode",
  "vntype",
  "arch",
]);

/** Words of a `#PBS` line: blanks separate, either quote keeps together. */
const wordsOf = (line: string, entry: number, refuse: RefuseOption): string[] => {
  const words: string[] = [];
  let text: string | undefined;
  let quote = "";
  for (const char of line) {
    if (char === "\\") refuse({ entry, detail: "contains a backslash", remedy: "Quote with ' or \"." });
    if (quote !== "") {
      if (char === quote) quote = "";
      else text += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      text ??= "";
    } else if (/\s/.test(char)) {
      if (text !== undefined) words.push(text);
      text = undefined;
    } else text = (text ?? "") + char;
  }
  if (quote !== "") refuse({ entry, detail: `has an open ${quote}`, remedy: "Close the quote." });
  if (text !== undefined) words.push(text);
  return words;
};

const NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;
/** Without what ends a value in a select or in a line. */
const VALUE = /^[^\s"',+]*$/;

/**
 * `counted`: the resource by which Slipway sizes chunks, `ngpus` or `ncpus`; what a user says of it is left out, as
 * is the number of chunks.
 */
export const readPbsArgs = (args: readonly string[], counted: string, refuse: RefuseOption): PbsOptions => {
  const options: { letter: string; value: string; entry: number }[] = [];
  const chunk = new Map<string, string>();
  const job = new Map<string, string>();
  const ignored: string[] = [];
  let place: string | undefined;

  const resource = (item: string, entry: number, inSelect: boolean): void => {
    const equals = item.indexOf("=");
    const [name, value] = [item.slice(0, Math.max(0, equals)).trim(), item.slice(equals + 1)];
    if (!NAME.test(name) || !VALUE.test(value)) {
      refuse({
        entry,
        detail: `'${item.slice(0, 60)}' is not a resource`,
        remedy: "Write name=value, without spaces.",
      });
    } else if (name === counted || ["nodes", "nodect", "ppn"].includes(name)) {
      ignored.push(`${name}=${value}: slots decide it`);
    } else if (name === "place" && !inSelect) place = value;
    else if (!inSelect && !OF_CHUNKS.has(name)) job.set(name, value);
    else if (!chunk.has(name)) chunk.set(name, value);
    else if (chunk.get(name) !== value) ignored.push(`${name}=${value}: all chunks are alike`);
  };

  const select = (text: string, entry: number): void => {
    for (const part of text.split("+")) {
      const [first = "", ...rest] = part.split(":");
      if (/^\d+$/.test(first)) ignored.push(`${first} chunks: slots decide it`);
      else rest.unshift(first);
      for (const item of rest) resource(item, entry, true);
    }
  };

  const resourceList = (text: string, entry: number): void => {
    for (const item of text.split(",")) {
      if (/^\s*select\s*=/.test(item)) select(item.slice(item.indexOf("=") + 1), entry);
      else resource(item, entry, false);
    }
  };

  const words = args.flatMap((line, entry) => wordsOf(line, entry, refuse).map((text) => ({ text, entry })));
  for (let i = 0; i < words.length; i++) {
    const { text, entry } = words[i]!;
    if (text.startsWith("--")) {
      refuse({ entry, option: text.slice(0, 60), detail: "", remedy: "Remove it." });
      continue;
    }
    if (!/^-[A-Za-z]/.test(text)) {
      refuse({ entry, detail: `'${text.slice(0, 60)}' is not an option`, remedy: "Write -l name=value." });
      continue;
    }
    for (let at = 1; at < text.length; at++) {
      const letter = text[at]!;
      const isFlag = FLAGS.has(letter);
      const joined = text.slice(at + 1);
      const value = isFlag ? "" : joined !== "" ? joined : words[++i]?.text;
      if (!ALLOWED.has(letter)) {
        const remedy = REMEDIES[letter] ?? "Remove it: Slipway controls it.";
        refuse({ entry, option: `-${letter}`, detail: "", remedy });
      } else if (value === undefined) refuse({ entry, detail: `-${letter} needs a value`, remedy: "Add its value." });
      else if (letter === "l") resourceList(value, entry);
      else if (value.includes("'") && value.includes('"')) {
        refuse({ entry, detail: "contains both kinds of quotes", remedy: "Use one kind." });
      } else options.push({ letter, value, entry });
      if (!isFlag) break;
    }
  }
  return { options, chunk, job, ignored, ...(place === undefined ? {} : { place }) };
};

/** A word of a `#PBS` line that means exactly this text, which holds at most one kind of quotes. */
export const pbsWord = (text: string): string =>
  /^[\w=,.:/@%+-]+$/.test(text) ? text : text.includes('"') ? `'${text}'` : `"${text}"`;
