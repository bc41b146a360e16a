import type { RunView } from "../../api/schemas.ts";
import { isFinalRun } from "../../client/outcome.ts";
import type { Style } from "./style.ts";
import { clipped, columnsOf, count, duration, perSecond, printable } from "./text.ts";

/** What a bar shows of a run. */
export interface Progress {
  readonly done: number;
  readonly failed: number;
  readonly canceled: number;
  readonly running: number;
  readonly total: number;
}

export const progressOf = (run: RunView): Progress => ({
  done: run.counts["DONE"] ?? 0,
  failed: run.counts["FAILED"] ?? 0,
  canceled: run.counts["CANCELED"] ?? 0,
  running: run.counts["AGENT_EXECUTING"] ?? 0,
  total: run.total,
});

export const endedOf = (progress: Progress): number => progress.done + progress.failed + progress.canceled;

/** Tasks ended per second, over the last seconds: recent enough to follow a change, long enough to be calm. */
export const rateMeter = (windowMs = 10_000) => {
  const samples: { readonly at: number; readonly ended: number }[] = [];
  return {
    add: (at: number, ended: number): void => {
      samples.push({ at, ended });
      while (samples.length > 2 && at - samples[1]!.at > windowMs) samples.shift();
    },
    rate: (): number | undefined => {
      const first = samples[0];
      const last = samples.at(-1);
      if (first === undefined || last === undefined || last.at - first.at < 200) return undefined;
      return Math.max(0, ((last.ended - first.ended) * 1000) / (last.at - first.at));
    },
  };
};

/** Seconds to the end: the server's word, else what the rate says. */
export const etaOf = (run: RunView, rate: number | undefined): number | undefined => {
  if (isFinalRun(run)) return undefined;
  if (run.eta !== null) return run.eta;
  const left = run.total - endedOf(progressOf(run));
  return rate === undefined || rate <= 0 ? undefined : left / rate;
};

/** The times to go between which it ends with a probability of 80 %, as the server says. */
export const rangeOf = (run: RunView): [string, string] | undefined => {
  // a server of an earlier version does not say
  const range = run.etaRange ?? null;
  if (isFinalRun(run) || range === null || run.eta === null) return undefined;
  const toGo = (date: string): string =>
    duration(Math.max(0, run.eta! + (Date.parse(date) - Date.parse(range.p50)) / 1000));
  return [toGo(range.p10), toGo(range.p90)];
};

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"] as const;

/** A bar of exactly `width` columns. Full only when all is ended. */
export const bar = (fraction: number, width: number, unicode: boolean): string => {
  const part = Math.min(1, Math.max(0, fraction));
  if (!unicode) {
    const full = Math.floor(part * width);
    return `${"#".repeat(full)}${"-".repeat(width - full)}`;
  }
  const eighths = Math.floor(part * width * 8);
  const full = eighths >> 3;
  const rest = EIGHTHS[eighths & 7]!;
  return `${"█".repeat(full)}${rest}${" ".repeat(width - full - (rest === "" ? 0 : 1))}`;
};

export interface BarOptions {
  readonly width: number;
  readonly unicode: boolean;
  readonly style: Style;
  readonly rate: number | undefined;
  readonly note?: string | undefined;
}

const LEAST_BAR = 8;
const MOST_BAR = 40;

/**
 * One line for a terminal, never wider than it: what does not fit is left out, the least important first (name, rate,
 * running, the time to go), and the bar takes what is left.
 */
export const progressLine = (run: RunView, { width, unicode, style, rate, note }: BarOptions): string => {
  const progress = progressOf(run);
  const ended = endedOf(progress);
  const eta = etaOf(run, rate);
  const edge = unicode ? "▕▏" : "[]";
  const parts: { readonly text: string; readonly paint?: (text: string) => string; readonly rank: number }[] = [
    { text: `${count(ended)}/${count(progress.total)}`, rank: 0 },
  ];
  if (progress.failed > 0) parts.push({ text: `${count(progress.failed)} failed`, paint: style.red, rank: 1 });
  if (progress.canceled > 0)
    parts.push({ text: `${count(progress.canceled)} cancelled`, paint: style.yellow, rank: 2 });
  if (progress.running > 0) parts.push({ text: `${count(progress.running)} running`, paint: style.cyan, rank: 4 });
  if (rate !== undefined && rate > 0) parts.push({ text: `${perSecond(rate)}/s`, rank: 5 });
  if (note !== undefined) parts.push({ text: note, paint: style.yellow, rank: 1 });
  else if (eta !== undefined) {
    parts.push({ text: `ETA ${duration(eta)}`, rank: 3 });
    const range = rangeOf(run);
    if (range !== undefined) parts.push({ text: `(${range.join(unicode ? "–" : "-")})`, rank: 6 });
  }

  const name = clipped(printable(run.name), 24, unicode ? "…" : "~");
  const head = `${run.id} ${name} `;
  const room = (kept: typeof parts, withHead: boolean): number =>
    width - 2 - kept.reduce((sum, part) => sum + 2 + columnsOf(part.text), 0) - (withHead ? columnsOf(head) : 0);

  let kept = parts;
  const withHead = room(parts, true) >= LEAST_BAR;
  while (kept.length > 1 && room(kept, withHead) < LEAST_BAR) {
    const worst = kept.reduce((most, part) => Math.max(most, part.rank), 0);
    kept = kept.filter((part) => part.rank !== worst);
  }
  const columns = Math.min(MOST_BAR, room(kept, withHead));
  const texts = kept.map((part) => (part.paint ?? ((text: string) => text))(part.text)).join("  ");
  if (columns < LEAST_BAR) return clipped(kept[0]!.text, width, "");
  const drawn = bar(progress.total === 0 ? 1 : ended / progress.total, columns, unicode);
  return `${withHead ? head : ""}${edge[0]}${style.green(drawn)}${edge[1]}  ${texts}`;
};

/** Why nothing runs, below the bar, cut where the terminal ends. */
export const reasonLine = (reason: string, width: number, unicode: boolean): string =>
  clipped(printable(reason), width, unicode ? "…" : "~");

/** The same for a file or a pipe: a line to keep. */
export const progressText = (run: RunView, rate: number | undefined): string => {
  const progress = progressOf(run);
  const ended = endedOf(progress);
  const eta = etaOf(run, rate);
  const percent = progress.total === 0 ? 100 : Math.floor((100 * ended) / progress.total);
  const parts = [`run ${run.id}: ${count(ended)}/${count(progress.total)} (${percent}%)`];
  if (progress.failed > 0) parts.push(`${count(progress.failed)} failed`);
  if (progress.canceled > 0) parts.push(`${count(progress.canceled)} cancelled`);
  if (progress.running > 0) parts.push(`${count(progress.running)} running`);
  if (rate !== undefined && rate > 0) parts.push(`${perSecond(rate)} tasks/s`);
  const range = rangeOf(run)?.join(" to ");
  if (eta !== undefined) parts.push(`ETA ${duration(eta)}${range === undefined ? "" : ` (${range})`}`);
  return parts.join(", ");
};
