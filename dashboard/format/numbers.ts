import { formatSize } from "../../src/core/quantities.ts";

/** Numbers as people read them. */

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** `12,345`; amounts such as half a GPU keep one digit. */
export const count = (value: number): string => grouped.format(value);

const SHORT = [
  [1e9, "G"],
  [1e6, "M"],
  [1e4, "k"],
] as const;

/** `12.3k` from ten thousand on: for axes and narrow places. */
export const short = (value: number): string => {
  const found = SHORT.find(([least]) => Math.abs(value) >= least);
  if (found === undefined) return count(Math.round(value * 100) / 100);
  const unit = found[1] === "k" ? 1000 : found[0];
  const scaled = value / unit;
  return `${scaled >= 100 ? Math.round(scaled) : Math.round(scaled * 10) / 10}${found[1]}`;
};

/** `1 task`, `12,000 tasks`. */
export const plural = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** Never 100 % before all of it, nor 0 % after some. */
export const percent = (part: number, whole: number): string => {
  if (whole <= 0) return "–";
  const exact = (100 * part) / whole;
  if (exact > 99 && part < whole) return "99 %";
  if (exact > 0 && exact < 1) return "<1 %";
  return `${Math.round(exact)} %`;
};

export const perSecond = (rate: number): string => {
  if (rate === 0) return "0/s";
  if (rate < 1) return `${count(Math.round(rate * 600) / 10)}/min`;
  return `${rate < 10 ? Math.round(rate * 10) / 10 : short(Math.round(rate))}/s`;
};

export const bytes = (value: number | null | undefined): string => (value == null ? "–" : formatSize(value));

/** An amount of a resource: `mem` and `tmp` are bytes. */
export const amount = (name: string, value: number): string =>
  name === "mem" || name === "tmp" ? formatSize(value) : count(value);
