import { quoteFor } from "../../core/shell-quoting.ts";

/**
 * What workers find in their environment. The lines are made of the status file's parameters alone, before any Dask is
 * imported: no configuration of the site can get into them, and in a worker they win over it.
 */

/** Keys that schedulers, workers and nannies read: these become variables too. */
const PREFIXES = ["distributed.scheduler.", "distributed.worker.", "distributed.nanny.", "distributed.comm."];
const KEYS = ["temporary-directory"];

export const isForWorkers = (key: string): boolean =>
  KEYS.includes(key) || PREFIXES.some((prefix) => key.replaceAll("_", "-").startsWith(prefix));

/** `distributed.worker.daemon` → DASK_DISTRIBUTED__WORKER__DAEMON. */
export const variableOf = (key: string): string =>
  `DASK_${key.replaceAll(".", "__").replaceAll("-", "_").toUpperCase()}`;

export type ConfigValue = string | number | boolean | Readonly<Record<string, number>>;

const literal = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", String.raw`\'`)}'`;

/** As Dask reads it back from a variable: a Python literal, or text that is none. */
export const pythonText = (value: ConfigValue): string => {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number" || typeof value === "string") return String(value);
  return `{${Object.entries(value)
    .map(([name, amount]) => `${literal(name)}: ${amount}`)
    .join(", ")}}`;
};

/**
 * One line of bash: the value is data, whatever it holds. A line break in it is written as `\n`: OAR drops lines that begin
 * with `#`, and HTCondor's job files know no line breaks in a command.
 */
export const exportLine = (name: string, value: string): string => {
  const word = /[\r\n]/.test(value)
    ? `$'${value
        .replaceAll("\\", "\\\\")
        .replaceAll("'", String.raw`\'`)
        .replaceAll("\n", String.raw`\n`)
        .replaceAll("\r", String.raw`\r`)}'`
    : quoteFor(value, "word");
  return `export ${name}=${word}`;
};
