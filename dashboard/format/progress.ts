import { stateWord } from "../../src/core/state-words.ts";
import { duration } from "./time.ts";

/** How far a run or a stage is, from its counts by state. */

/** The order in which states lie in a bar, from the left. */
export const BAR_ORDER = [
  "done",
  "failed",
  "lost",
  "cancelled",
  "running",
  "staging",
  "starting",
  "ready",
  "waiting",
] as const;

export type StateWord = (typeof BAR_ORDER)[number] | "queued";

const FINAL = new Set(["DONE", "FAILED", "CANCELED"]);
export const isFinal = (state: string): boolean => FINAL.has(state);

export type Counts = Readonly<Record<string, number>>;

/** Counts by what people read, in the order of a bar; those without tasks left out. */
export const byWord = (counts: Counts): { readonly word: string; readonly tasks: number }[] => {
  const sums = new Map<string, number>();
  for (const [state, tasks] of Object.entries(counts))
    if (tasks > 0) sums.set(stateWord(state), (sums.get(stateWord(state)) ?? 0) + tasks);
  const place = (word: string): number => {
    const found = BAR_ORDER.findIndex((each) => each === word);
    return found < 0 ? BAR_ORDER.length : found;
  };
  return [...sums].map(([word, tasks]) => ({ word, tasks })).toSorted((a, b) => place(a.word) - place(b.word));
};

export const endedOf = (counts: Counts): number =>
  (counts["DONE"] ?? 0) + (counts["FAILED"] ?? 0) + (counts["CANCELED"] ?? 0);

interface Eta {
  readonly eta: number | null;
  readonly etaRange?: { readonly p10: string; readonly p50: string; readonly p90: string } | null;
}

/** `12m`, and the range that holds it with 80 %: `10m – 15m`. */
export const etaOf = (run: Eta): { readonly likely: string; readonly range: string | undefined } | undefined => {
  if (run.eta === null) return undefined;
  const range = run.etaRange ?? undefined;
  if (range === undefined) return { likely: duration(run.eta), range: undefined };
  const toGo = (date: string): string =>
    duration(Math.max(0, run.eta! + (Date.parse(date) - Date.parse(range.p50)) / 1000));
  const [from, to] = [toGo(range.p10), toGo(range.p90)];
  return { likely: duration(run.eta), range: from === to ? undefined : `${from} – ${to}` };
};
