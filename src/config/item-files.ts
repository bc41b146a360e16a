import { createReadStream, open as openDescriptor, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { Socket } from "node:net";
import { promisify } from "node:util";
import { reasonOf } from "./file-text.ts";
import type { Place } from "./source.ts";
import type { ItemsInput } from "./task-items.ts";
import { checkItem, MAX_ITEM_BYTES, storedJson } from "../core/items.ts";
import type { GroupSpec } from "../core/spec.ts";
import { SlipwayError } from "../errors.ts";

/** Items from files: their lines, or JSON values; `-` is standard input. */
type FileInput = Extract<ItemsInput, { kind: "lines" | "json" }>;

/** The items of one group, read when they are sent; `once`: they cannot be read again. */
export interface ItemStream {
  readonly group: number;
  readonly once: boolean;
  readonly batches: () => AsyncIterable<readonly unknown[]>;
}

const CHUNK = 256 * 1024;
/** A top-level JSON array is parsed whole, up to what a string of V8 holds. */
const LARGEST_ARRAY = 512 * 1024 * 1024 - 1024;
const BATCH = 5000;

const nameOf = (path: string): string => (path === "-" ? "standard input" : path);

const bad = (input: FileInput, line: number | undefined, detail: string): SlipwayError => {
  const file = nameOf(input.path);
  const { where, key } = input.place;
  if (line === undefined)
    return new SlipwayError("bad-value", {
      where,
      key,
      detail: `${file} ${detail}`,
      remedy: "Give at least one item.",
    });
  return new SlipwayError("bad-file", { where: `${file}:${line}`, detail });
};

const unreadable = (place: Place, path: string, error: unknown): SlipwayError =>
  new SlipwayError("no-such-file", { where: place.where, path: nameOf(path), detail: reasonOf(error) }, error);

/** Fails now rather than half-way through a submission: the file must be readable and not empty. */
const checkReadable = async (input: FileInput): Promise<void> => {
  if (input.path === "-") return;
  try {
    // A pipe (`<(command)`, mkfifo) can be opened only once.
    if (isPipe(input.path)) return;
    const file = await open(input.path, "r");
    try {
      const stats = await file.stat();
      if (stats.isDirectory()) throw Object.assign(new Error("it is a directory"), { code: "EISDIR" });
      if (stats.isFile() && stats.size === 0) throw bad(input, undefined, "is empty: there would be no tasks");
    } finally {
      await file.close();
    }
  } catch (error) {
    throw error instanceof SlipwayError ? error : unreadable(input.place, input.path, error);
  }
};

const isPipe = (path: string): boolean => statSync(path).isFIFO();

/** A pipe is read like a socket: reading it as a file would keep the process from ending while nothing comes. */
const openSource = async (path: string): Promise<AsyncIterable<Buffer>> => {
  if (path === "-") return process.stdin;
  if (!isPipe(path)) return createReadStream(path, { highWaterMark: CHUNK });
  const fd = await promisify(openDescriptor)(path, "r");
  return new Socket({ fd, readable: true, writable: false });
};

async function* bytesOf({ path, place }: FileInput): AsyncGenerator<Buffer> {
  try {
    const source = await openSource(path);
    for await (const chunk of source) yield chunk;
  } catch (error) {
    throw unreadable(place, path, error);
  }
}

/** Lines in batches. Bytes that are not UTF-8 and lines too long for an item are refused with their line. */
async function* linesOf(input: FileInput, source: AsyncIterable<Buffer>, longest: number): AsyncGenerator<string[]> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let line = 1;
  let held = "";
  const decode = (chunk: Buffer | undefined): string => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch (error) {
      throw Object.assign(bad(input, line, "near this line the text is not UTF-8"), { cause: error });
    }
  };
  for await (const chunk of source) {
    const lines = (held + decode(chunk)).split("\n");
    held = lines.pop()!;
    line += lines.length;
    if (held.length > longest) throw bad(input, line, `the line is longer than ${longest} characters`);
    yield lines;
  }
  held += decode(undefined);
  if (held !== "") yield [held];
}

const withoutReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line);

/** One item per line, empty lines too; an empty rest after the last line break is not one. */
async function* textItems(input: FileInput): AsyncGenerator<{ readonly line: number; readonly item: string }[]> {
  let line = 0;
  for await (const lines of linesOf(input, bytesOf(input), MAX_ITEM_BYTES))
    yield lines.map((text) => ({ line: ++line, item: withoutReturn(text) }));
}

interface Numbered {
  readonly line: number;
  readonly item: unknown;
}

const parseLine = (input: FileInput, line: number, text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    const problem = (error as Error).message.slice(0, 200);
    throw Object.assign(bad(input, line, `not JSON: ${problem}; write one array, or one value per line`), {
      cause: error,
    });
  }
};

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/** A text that starts with `[`: one array, or lines that are arrays themselves. */
const arrayItems = (input: FileInput, text: string): Numbered[] => {
  const end = text.indexOf("\n");
  if (!isJson(text) && end >= 0 && isJson(text.slice(0, end)))
    return text
      .split("\n")
      .map((each, at) => ({ line: at + 1, text: each.trim() }))
      .filter((each) => each.text !== "")
      .map((each) => ({ line: each.line, item: parseLine(input, each.line, each.text) }));
  return (parseLine(input, 1, text) as unknown[]).map((item) => ({ line: 1, item }));
};

/** An array of values is read whole; one value per line is streamed, whatever its size. */
async function* jsonItems(input: FileInput): AsyncGenerator<Numbered[]> {
  let line = 0;
  let whole: string[] | undefined;
  let wholeLength = 0;
  let isStarted = false;
  for await (const lines of linesOf(input, bytesOf(input), LARGEST_ARRAY)) {
    if (!isStarted) {
      const first = lines.find((text) => text.trim() !== "");
      if (first !== undefined) isStarted = true;
      if (first?.trimStart().startsWith("[") === true) whole = Array.from({ length: line }, () => "");
    }
    if (whole === undefined) {
      const numbered = lines.map((text) => ({ line: ++line, text: text.trim() })).filter((each) => each.text !== "");
      yield numbered.map((each) => ({ line: each.line, item: parseLine(input, each.line, each.text) }));
      continue;
    }
    for (const text of lines) wholeLength += text.length + 1;
    if (wholeLength > LARGEST_ARRAY) throw bad(input, 1, "the array is larger than 512 MB; write one value per line");
    for (const text of lines) whole.push(text);
  }
  if (whole === undefined) return;
  const items = arrayItems(input, whole.join("\n"));
  for (let at = 0; at < items.length; at += BATCH) yield items.slice(at, at + BATCH);
}

/** Batches for the server, each item checked against its group first, so that an error names the file and the line. */
async function* checkedBatches(group: GroupSpec, input: FileInput): AsyncGenerator<unknown[]> {
  const isJsonInput = input.kind === "json";
  let index = 0;
  for await (const batch of isJsonInput ? jsonItems(input) : textItems(input)) {
    for (const { line, item } of batch) {
      try {
        checkItem(group, isJsonInput ? storedJson(item) : (item as string), isJsonInput, index++);
      } catch (error) {
        if (error instanceof RangeError) throw Object.assign(bad(input, line, error.message), { cause: error });
        throw error;
      }
    }
    yield batch.map(({ item }) => item);
  }
  if (index === 0) throw bad(input, undefined, "has no items: there would be no tasks");
}

/** The streams of a submission, in the order of its groups. Missing and empty files are refused here. */
export const itemStreams = async (
  groups: readonly GroupSpec[],
  inputs: ReadonlyMap<number, ItemsInput>,
): Promise<ItemStream[]> => {
  const streams: ItemStream[] = [];
  let readers = 0;
  for (const [group, input] of inputs) {
    if (input.kind !== "lines" && input.kind !== "json") continue;
    await checkReadable(input);
    const once = input.path === "-" || isPipe(input.path);
    if (input.path === "-" && ++readers > 1) throw bad(input, undefined, "can be read by only one task");
    streams.push({ group, once, batches: () => checkedBatches(groups[group]!, input) });
  }
  return streams;
};
