import { open } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { PROLOGUE_FAILED } from "../managers/pilot-script.ts";

/** What the job of a pilot printed, cut to its head and tail: often the only clue to why it did not start. */

const HEAD = 1024;
const TAIL = 2048;
const MOST_FILES = 4;

const excerpt = async (path: string): Promise<string> => {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const read = async (from: number, length: number): Promise<string> => {
      const buffer = Buffer.alloc(length);
      const { bytesRead } = await file.read(buffer, 0, length, from);
      return buffer.toString("utf8", 0, bytesRead);
    };
    if (size <= HEAD + TAIL) return await read(0, size);
    const left = size - HEAD - TAIL;
    return `${await read(0, HEAD)}\n… ${left} bytes …\n${await read(size - TAIL, TAIL)}`;
  } finally {
    await file.close();
  }
};

/** Each file under its name, without files that are missing or empty. */
export const readOutput = async (directory: string, names: readonly string[]): Promise<string> => {
  const parts: string[] = [];
  for (const name of names.slice(0, MOST_FILES)) {
    const text = await excerpt(resolve(directory, name)).catch(() => "");
    if (text.trim() !== "") parts.push(`${basename(name)}:\n${text.trimEnd()}`);
  }
  return parts.join("\n");
};

const LONGEST = 300;

/**
 * The last line that says anything, for a reason that fits on one line. Where that is ours, it says what failed, and the
 * line before it why.
 */
export const lastLine = (output: string): string => {
  const [last = "", before = ""] = output
    .trimEnd()
    .split("\n")
    .slice(-2)
    .toReversed()
    .map((line) => line.trim());
  if (!last.startsWith(PROLOGUE_FAILED)) return last.slice(0, LONGEST);
  const said = last.slice("slipway: ".length, LONGEST);
  return before === "" || before === "stderr:" ? said : `${said} (${before.slice(0, LONGEST)})`;
};
