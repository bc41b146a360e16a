import { useEffect, useState } from "preact/hooks";
import { ApiError, ask, lines, query, texts } from "./api.ts";
import { backoff } from "./backoff.ts";
import { generation } from "./live.ts";
import { plainOutput } from "../format/text.ts";

/** Output as it comes, bounded: of much only the end is kept. */

const MOST_KEPT = 400_000;

export interface Output {
  readonly text: string;
  /** Something before it was dropped. */
  readonly cut: boolean;
  readonly state: "loading" | "following" | "ended";
  readonly error: ApiError | undefined;
}

const EMPTY: Output = { text: "", cut: false, state: "loading", error: undefined };

/** The end of it, from the beginning of a line. */
const kept = (text: string): string => {
  if (text.length <= MOST_KEPT) return text;
  const tail = text.slice(text.length - (MOST_KEPT * 3) / 4);
  return tail.slice(tail.indexOf("\n") + 1);
};

type Pieces = (from: number, signal: AbortSignal) => AsyncIterable<{ readonly text: string; readonly bytes: number }>;

/** Reads pieces; when the connection breaks while it follows, goes on where it was. At most ten redraws a second. */
export const useOutput = (key: string, pieces: Pieces, follow: boolean): Output => {
  const [output, setOutput] = useState<Output>(EMPTY);
  useEffect(() => {
    const control = new AbortController();
    let raw = "";
    let cut = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (state: Output["state"], error?: ApiError): void => {
      clearTimeout(timer);
      timer = undefined;
      if (!control.signal.aborted) setOutput({ text: plainOutput(raw), cut, state, error });
    };
    const read = async (): Promise<void> => {
      let from = 0;
      for (let failures = 0; ; failures++) {
        try {
          for await (const { text, bytes } of pieces(from, control.signal)) {
            from += bytes;
            failures = 0;
            const next = kept(raw + text);
            cut ||= next.length < raw.length + text.length;
            raw = next;
            timer ??= setTimeout(() => show("following"), 100);
          }
          return show("ended");
        } catch (error) {
          if (control.signal.aborted) return;
          if (error instanceof ApiError) return show("ended", error);
          await new Promise((resolve) => setTimeout(resolve, backoff(failures)));
        }
      }
    };
    setOutput(EMPTY);
    void read();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [key, follow, generation.value]);
  return output;
};

/** What one attempt of a task wrote. */
export const taskPieces = (
  run: number,
  task: number,
  stream: string,
  attempt: number | undefined,
  follow: boolean,
): Pieces =>
  async function* (from, signal) {
    const answer = await ask(`runs/${run}/tasks/${task}/logs${query({ stream, attempt, follow, from })}`, { signal });
    yield* counted(answer);
  };

export const launchPieces = (launch: number, stream: string, follow: boolean): Pieces =>
  async function* (from, signal) {
    // it cannot begin in the middle: what we have is skipped
    let skip = from;
    const answer = await ask(`launches/${launch}/logs${query({ stream, follow })}`, { signal });
    for await (const piece of counted(answer)) {
      if (skip >= piece.bytes) skip -= piece.bytes;
      else yield piece;
    }
  };

async function* counted(answer: Response) {
  const encoder = new TextEncoder();
  for await (const text of texts(answer)) yield { text, bytes: encoder.encode(text).length };
}

/** What all tasks of a run wrote; a line says whose it is when that changes. */
export const runPieces = (run: number, stream: string, follow: boolean): Pieces =>
  async function* (from, signal) {
    const decoders = new Map<string, TextDecoder>();
    let skip = from;
    let last = "";
    const answer = await ask(`runs/${run}/logs${query({ stream, follow })}`, { signal });
    for await (const { task, data } of lines<{ task: string; data: string }>(answer)) {
      const decoder = decoders.get(task) ?? new TextDecoder();
      decoders.set(task, decoder);
      const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      const text = decoder.decode(bytes, { stream: true });
      const head = task === last ? "" : `${last === "" ? "" : "\n"}── ${task} ──\n`;
      last = task;
      if (skip > 0) {
        skip -= bytes.length;
        continue;
      }
      yield { text: head + text, bytes: bytes.length };
    }
  };
