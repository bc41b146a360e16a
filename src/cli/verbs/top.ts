import { SlipwayError } from "../../errors.ts";
import type { OverviewView } from "../../api/overview.ts";
import { isConnectionLost } from "../../client/index.ts";
import type { Context } from "../context.ts";
import { onInterrupts } from "../interrupts.ts";
import { rateMeter } from "../render/progress.ts";
import { topScreen } from "../render/top.ts";
import { type Define, examples } from "../verb.ts";

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
/** q, Escape, Ctrl-C, Ctrl-D. */
const LEAVING_KEYS: ReadonlySet<string> = new Set(["q", "Q", "\u001b", "\u0003", "\u0004"]);

const endedOf = ({ ended }: OverviewView): number => ended.done + ended.failed + ended.cancelled;

/** One screen for a file or a pipe. */
const once = async ({ client, answer, style, unicode, out }: Context): Promise<void> => {
  const overview = await client.overview();
  const screen = { width: out.columns() ?? 80, height: Infinity, style, unicode, now: client.now(), rate: undefined };
  answer(overview, () => topScreen(overview, screen).join("\n"));
};

/** Until somebody leaves. The whole screen is one write, over what is there: nothing flickers. */
const live = async (context: Context, everyMs: number): Promise<void> => {
  const { client, style, unicode, out } = context;
  const meter = rateMeter();
  let overview = await client.overview();
  let trouble: string | undefined;
  const draw = (): void => {
    const width = (out.columns() ?? 80) - 1;
    const height = process.stdout.rows || 24;
    const lines = topScreen(overview, {
      width,
      height,
      style,
      unicode,
      now: client.now(),
      rate: meter.rate(),
      trouble,
    });
    out.text(`${HOME}${lines.map((line) => line + CLEAR_LINE).join("\r\n")}${CLEAR_BELOW}`);
  };
  const look = async (): Promise<void> => {
    try {
      overview = await client.overview();
      meter.add(performance.now(), endedOf(overview));
      trouble = undefined;
    } catch (error) {
      if (!isConnectionLost(error)) throw error;
      trouble = "the server does not answer; trying again";
    }
  };

  let leave: () => void = () => undefined;
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const onKey = (key: Buffer): void => {
    if (LEAVING_KEYS.has(key.toString("latin1"))) leave();
  };
  const restore = onInterrupts(leave, leave);
  out.text(ENTER);
  process.stdin.setRawMode?.(true);
  process.stdin.on("data", onKey).resume();
  process.stdout.on("resize", draw);
  out.closed.addEventListener("abort", leave);
  let isOver = false;
  void left.then(() => (isOver = true));
  meter.add(performance.now(), endedOf(overview));
  try {
    draw();
    for (;;) {
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([left, new Promise((resolve) => (timer = setTimeout(resolve, everyMs)))]);
      clearTimeout(timer);
      if (isOver) return;
      await Promise.race([left, look()]);
      if (isOver) return;
      draw();
    }
  } finally {
    process.stdout.off("resize", draw);
    process.stdin.off("data", onKey).pause();
    process.stdin.setRawMode?.(false);
    out.text(LEAVE);
    restore();
  }
};

const secondsOf = (text: string): number => {
  const seconds = Number(text);
  if (!(seconds >= 0.1 && seconds <= 3600))
    throw new SlipwayError("usage", { detail: `--every must be from 0.1 to 3600 seconds, not '${text}'` });
  return seconds;
};

export const define: Define = (command, { act }) =>
  void command
    .description(
      "The overview, live: tasks running, ready, waiting and ended, throughput, cores and GPUs in use, fleets with their " +
        "pilots and time left, runs with progress and the time to go. q leaves. Where the output is no terminal, with " +
        "--once and with --json it is printed once.",
    )
    .option("--every <seconds>", "the time between two looks", "1")
    .option("--once", "print it once")
    .addHelpText("after", examples(["slipway top", "slipway top --every 5", "slipway top --json | jq .tasks"]))
    .action(
      act(async (context, _args, command) => {
        const { every, once: isOnce = false } = command.opts<{ every: string; once?: boolean }>();
        const everyMs = secondsOf(every) * 1000;
        const isLive = !isOnce && !context.json && context.out.isTerminal && process.stdin.isTTY === true;
        return isLive && process.env["TERM"] !== "dumb" ? live(context, everyMs) : once(context);
      }),
    );
