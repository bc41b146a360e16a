/** What a run's file says, with the file's own keys (`max-fails`, `time-limit`…). */
export type RunDocument = Readonly<Record<string, unknown>>;

/**
 * The items of one group whose document says `each: {stream: "text" | "json"}`. `batches` is called once per try; a
 * source that can be read only once (standard input) says `once: true`, and a lost connection is then an error.
 */
export interface ItemStream {
  readonly group: number;
  readonly batches: () => AsyncIterable<readonly unknown[]>;
  readonly once?: boolean;
}

/** Lines the server reads stay well below its limit. */
const LARGEST_LINE = 512 * 1024;
const MOST_ITEMS = 20_000;

function* itemLines(group: number, items: readonly unknown[]): Generator<string> {
  if (items.length <= MOST_ITEMS) {
    const line = JSON.stringify({ group, items });
    if (line.length <= LARGEST_LINE || items.length === 1) {
      yield `${line}\n`;
      return;
    }
  }
  const half = items.length >> 1;
  yield* itemLines(group, items.slice(0, half));
  yield* itemLines(group, items.slice(half));
}

/** The NDJSON body of a submission. It is one only with its last line: a request cut short submits nothing. */
export async function* submission(document: RunDocument, streams: readonly ItemStream[]): AsyncGenerator<string> {
  yield `${JSON.stringify(document)}\n`;
  for (const { group, batches } of streams)
    for await (const batch of batches()) if (batch.length > 0) yield* itemLines(group, batch);
  yield '{"end":true}\n';
}

let randomUUID: (() => string) | undefined;

/** Whoever only asks needs no cryptography, which takes a while to load. */
export const newUuid = async (): Promise<string> => {
  randomUUID ??= (await import("node:crypto")).randomUUID;
  return randomUUID();
};

/** The server knows a repeated submission by its uuid: it is the same run. */
export const withUuid = async (document: RunDocument): Promise<RunDocument> =>
  typeof document["uuid"] === "string" ? document : { ...document, uuid: await newUuid() };

/** Gathers single items into batches of a size the server likes. */
export async function* inBatches<T>(items: Iterable<T> | AsyncIterable<T>, size = 1000): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
