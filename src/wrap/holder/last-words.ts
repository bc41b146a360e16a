import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const WORDS = 500;

/** The end of what a job printed, found by its id in the names of files. */
export const lastWords = async (directory: string, id: string): Promise<string> => {
  const number = /^\d+/.exec(id)?.[0] ?? id;
  const mine = (name: string): boolean =>
    name.split(/\D+/).includes(number) && /\.(out|err|stderr|stdout|[eo]\d+)$/.test(name);
  const names = (await readdir(directory).catch(() => [])).filter(mine);
  for (const name of names.toSorted((a, b) => Number(/err/.test(b)) - Number(/err/.test(a)))) {
    const text = (await readFile(join(directory, name), "utf8").catch(() => "")).trim();
    if (text !== "") return text.split("\n").slice(-3).join(" | ").slice(-WORDS);
  }
  return "";
};
