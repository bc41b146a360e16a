import type { RunView } from "../api/schemas.ts";
import { isFinalRun } from "../client/outcome.ts";
import type { Context } from "./context.ts";
import { endedOf, progressLine, progressOf, progressText, rateMeter, reasonLine } from "./render/progress.ts";
import { printable } from "./render/text.ts";

/** What `run` and `wait` show while a run is under way. */
export interface Display {
  update(run: RunView): void;
  /** A sentence above the bar. */
  say(text: string): void;
  /** A word at the end of the bar: what is going on besides the work. */
  state(note: string | undefined): void;
  /** Why nothing runs, in a line of its own; undefined: something does. */
  reason(text: string | undefined): void;
  end(): void;
}

const REDRAW_MS = 100;
/** A file or a pipe gets a line at most this often. */
const LINE_MS = 5000;
/** From the line of the bar to the end of the screen. */
const CLEAR = "\r\u001b[J";
const UP = "\u001b[1A\r";
const DEFAULT_WIDTH = 80;

const nothing = (): void => undefined;
const silent: Display = { update: nothing, say: nothing, state: nothing, reason: nothing, end: nothing };

/** One line of a terminal, two while nothing runs, redrawn at most ten times a second, and at once when the terminal changes its size. */
const terminalDisplay = (context: Context): Display => {
  const meter = rateMeter();
  let run: RunView | undefined;
  let note: string | undefined;
  let reason: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let drawnAt = -Infinity;

  const draw = (): void => {
    clearTimeout(timer);
    timer = undefined;
    drawnAt = performance.now();
    if (run === undefined) return;
    // The last column stays free: some terminals wrap when it is written.
    const width = (context.err.columns() ?? DEFAULT_WIDTH) - 1;
    const rate = meter.rate();
    const line = progressLine(run, { width, unicode: context.unicode, style: context.errorStyle, rate, note });
    const why =
      reason === undefined ? "" : `\n${context.errorStyle.yellow(reasonLine(reason, width, context.unicode))}${UP}`;
    context.err.text(CLEAR + line + why);
  };
  const soon = (): void => {
    timer ??= setTimeout(draw, Math.max(0, REDRAW_MS - (performance.now() - drawnAt)));
  };
  process.stderr.on("resize", draw);
  return {
    update: (next) => {
      run = next;
      meter.add(performance.now(), endedOf(progressOf(next)));
      soon();
    },
    say: (text) => {
      context.err.text(`${CLEAR}${text}\n`);
      draw();
    },
    state: (text) => {
      note = text;
      soon();
    },
    reason: (text) => {
      if (text === reason) return;
      reason = text;
      soon();
    },
    end: () => {
      clearTimeout(timer);
      process.stderr.off("resize", draw);
      if (run !== undefined) context.err.text(CLEAR);
      // What is written later must not be cleared by a second end.
      run = undefined;
    },
  };
};

/** Lines to keep: now and then while something changes, and at once for the first failure. */
const linesDisplay = (context: Context): Display => {
  const meter = rateMeter();
  let lineAt = performance.now();
  let last = "";
  let failed = false;
  let reason: string | undefined;
  return {
    update: (run) => {
      // The summary says how it ended.
      if (isFinalRun(run)) return;
      const now = performance.now();
      const progress = progressOf(run);
      meter.add(now, endedOf(progress));
      const firstFailure = progress.failed > 0 && !failed;
      if (firstFailure) failed = true;
      const text = progressText(run, meter.rate());
      if (text === last || (!firstFailure && now - lineAt < LINE_MS)) return;
      lineAt = now;
      last = text;
      context.err.line(text);
    },
    say: (text) => context.err.line(text),
    state: nothing,
    reason: (text) => {
      if (text !== undefined && text !== reason) context.err.line(printable(text));
      reason = text;
    },
    end: nothing,
  };
};

/** With `lines` never a bar. */
export const displayFor = (context: Context, { lines = false } = {}): Display => {
  if (context.quiet || context.json) return silent;
  return !lines && context.err.isTerminal && process.env["TERM"] !== "dumb"
    ? terminalDisplay(context)
    : linesDisplay(context);
};
