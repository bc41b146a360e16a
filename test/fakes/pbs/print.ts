import { VERSION, type PbsConfig } from "./config.ts";
import type { Attribute } from "./job.ts";

/** Records as the real commands print them: the JSON of two kinds of builds, or text. */

/** Attributes that are numbers by their type; the good build quotes everything else. */
const NUMERIC = new Set([
  ..."Priority substate Exit_status run_count Stageout_status umask history_timestamp array_index session_id".split(
    " ",
  ),
  ..."ncpus ngpus nodect cpupercent pcpus Port last_state_change_time total_jobs".split(" "),
]);

/** What C's strtod accepts as a number; a leading zero keeps it text. */
const LOOKS_LIKE_NUMBER = /^[+-]?(?!0\d)(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|nan|inf(?:inity)?|0[xX][0-9a-fA-F]+)$/i;

const quoteHead = (text: string): string => JSON.stringify(text.replaceAll("\\", "\\\\"));

/** Unprintable bytes become a circumflex and the byte shifted by 64, which is often not text at all. */
const quoteRelease = (text: string): string => {
  let out = "";
  for (const byte of Buffer.from(text, "utf8")) {
    const char = String.fromCharCode(byte);
    if (char === "\n") out += "\\n";
    else if (char === "\t") out += "\\t";
    else if (char === '"' || char === "\\") out += `\\${char}`;
    else if (byte < 32 || byte > 126) out += `^${String.fromCharCode((byte + 64) & 255)}`;
    else out += char;
  }
  return `"${out}"`;
};

/** An empty value swallows the next variable. */
const swallowed = (variables: readonly Attribute[]): Attribute[] => {
  const out: Attribute[] = [];
  for (let at = 0; at < variables.length; at += 1) {
    const [name, value] = variables[at]!;
    const next = variables[at + 1];
    if (value === "" && next !== undefined) {
      out.push([name, `,${next[0]}=${String(next[1])}`]);
      at += 1;
    } else out.push([name, value]);
  }
  return out;
};

const lines = (attributes: readonly Attribute[], style: PbsConfig["json"], depth: number): string => {
  const indent = (style === "head" ? "\t" : "    ").repeat(depth);
  const gap = style === "head" ? "\t" : "";
  const one = ([name, value]: Attribute): string => {
    const key = style === "head" ? JSON.stringify(name) : quoteRelease(name);
    if (typeof value !== "string") {
      const inner = style === "release" && name === "Variable_List" ? swallowed(value) : value;
      return `${indent}${key}:${gap}{\n${lines(inner, style, depth + 1)}${inner.length > 0 ? "\n" : ""}${indent}}`;
    }
    const isBare = style === "head" ? NUMERIC.has(name) && /^-?\d+$/.test(value) : LOOKS_LIKE_NUMBER.test(value);
    return `${indent}${key}:${gap}${isBare ? value : style === "head" ? quoteHead(value) : quoteRelease(value)}`;
  };
  return attributes.map(one).join(",\n");
};

/** With no section at all when there is nothing to print. */
export const toJson = (
  config: Pick<PbsConfig, "json" | "server">,
  section: string,
  records: readonly Attribute[],
): Buffer => {
  const head: Attribute[] = [
    ["pbs_version", VERSION],
    ["pbs_server", config.server],
    ...(records.length === 0 ? [] : [[section, records] as Attribute]),
  ];
  const [indent, gap] = config.json === "head" ? ["\t", "\t"] : ["    ", ""];
  const stamp = `${indent}"timestamp":${gap}${Math.floor(Date.now() / 1000)},\n`;
  const text = `{\n${stamp}${lines(head, config.json, 1)}\n}\n`;
  return Buffer.from(text, config.json === "head" ? "utf8" : "latin1");
};

const WIDTH = 78;

/** A long value continues on the next line behind a tab. */
const folded = (name: string, value: string): string => {
  const out: string[] = [];
  let rest = `    ${name} = ${value}`;
  while (rest.length > WIDTH) {
    const comma = rest.lastIndexOf(",", WIDTH);
    const at = comma > 20 ? comma + 1 : WIDTH;
    out.push(rest.slice(0, at));
    rest = `\t${rest.slice(at)}`;
  }
  return [...out, rest].join("\n");
};

export const toText = (title: string, records: readonly Attribute[]): string =>
  records
    .map(([id, attributes]) => {
      const out = [`${title}${id}`];
      for (const [name, value] of attributes as readonly Attribute[])
        if (typeof value === "string") out.push(folded(name, value.replaceAll("\n", "\\n")));
        else if (name === "Variable_List")
          out.push(
            folded(name, value.map(([key, text]) => `${key}=${String(text).replaceAll("\n", "\\n")}`).join(",")),
          );
        else for (const [key, text] of value) out.push(folded(`${name}.${key}`, String(text)));
      return `${out.join("\n")}\n\n`;
    })
    .join("");
