import { stateWord } from "../../src/core/state-words.ts";
import { type Counts, byWord } from "../format/progress.ts";
import { count, percent } from "../format/numbers.ts";

/** A state in its colour, its shape and its word: never by colour alone. */
export const State = ({ of, note }: { of: string; note?: string }) => (
  <span class="state" data-state={stateWord(of)}>
    {stateWord(of)}
    {note !== undefined && <span class="dim">{note}</span>}
  </span>
);

const inWords = (counts: Counts): string =>
  byWord(counts)
    .map(({ word, tasks }) => `${count(tasks)} ${word}`)
    .join(", ");

/** How far something is: its tasks by state, as parts of one bar. */
export const Bar = ({ counts, total, tall = false }: { counts: Counts; total: number; tall?: boolean }) => {
  const ended = (counts["DONE"] ?? 0) + (counts["FAILED"] ?? 0) + (counts["CANCELED"] ?? 0);
  return (
    <div
      class={tall ? "bar tall" : "bar"}
      role="progressbar"
      aria-label="tasks ended"
      aria-valuemin={0}
      aria-valuemax={total}
      aria-valuenow={ended}
      aria-valuetext={`${percent(ended, total)}: ${inWords(counts)}`}
      title={inWords(counts)}
    >
      {byWord(counts).map(({ word, tasks }) => (
        <i key={word} data-state={word} style={{ flexGrow: tasks / Math.max(1, total) }} />
      ))}
    </div>
  );
};

/** The counts in words, each with its colour; `href` makes each a link to its tasks. */
export const Legend = ({ counts, href }: { counts: Counts; href?: (word: string) => string }) => (
  <div class="legend">
    {byWord(counts).map(({ word, tasks }) => {
      const inside = (
        <>
          <i class="swatch" data-state={word} />
          {count(tasks)} {word}
        </>
      );
      return href === undefined ? (
        <span key={word}>{inside}</span>
      ) : (
        <a key={word} href={href(word)}>
          {inside}
        </a>
      );
    })}
  </div>
);
